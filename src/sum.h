// A sum that carries what rounding dropped (Neumaier): the certificate adds up to 10^8 terms and promises 1e-12.
#pragma once

#include <cmath>

namespace spdc {

class Sum {
  public:
    void add(double term) noexcept {
        const double total = total_ + term;
        carry_ += std::fabs(total_) >= std::fabs(term) ? (total_ - total) + term : (term - total) + total_;
        total_ = total;
    }
    void add(const Sum &other) noexcept {
        add(other.total_);
        carry_ += other.carry_;
    }
    double value() const noexcept {
        // an infinite term makes the carry NaN, and the infinite total is the answer
        return std::isfinite(total_) ? total_ + carry_ : total_;
    }

  private:
    double total_ = 0;
    double carry_ = 0;
};

} // namespace spdc
