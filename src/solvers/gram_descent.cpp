#include "gram_descent.h"

#include "newton_kernels.h"
#include "parallel.h"

#include <algorithm>
#include <numeric>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

} // namespace

template <class Value>
GramDescent<Value>::GramDescent(const ColumnMatrix<Value> &columns, const Penalties &penalties, std::int64_t rows)
    : GramSweeps(penalties), columns_(columns), place_(at(columns.columns()), absent), count_(at(rows), 0) {}

template <class Value> void GramDescent<Value>::forget() {
    for (const std::int32_t j : list_) place_[at(j)] = absent;
    std::fill(count_.begin(), count_.end(), 0);
    list_.clear();
    moves_.clear();
}

template <class Value> void GramDescent<Value>::tidy(std::span<const std::int32_t> features) {
    const auto known = static_cast<std::size_t>(
        std::count_if(features.begin(), features.end(), [&](std::int32_t j) { return has(j); }));
    if (list_.size() - known <= std::max<std::size_t>(32, list_.size() / 4)) return;
    std::fill(moves_.begin(), moves_.end(), 0);
    for (const std::int32_t j : features) {
        if (has(j)) moves_[at(place_[at(j)])] = 1;
    }
    std::size_t kept = 0;
    std::vector<std::size_t> from;
    for (std::size_t k = 0; k < list_.size(); ++k) {
        const std::int32_t j = list_[k];
        if (moves_[k]) {
            from.push_back(k);
            list_[kept] = j;
            place_[at(j)] = static_cast<std::int32_t>(kept++);
            continue;
        }
        place_[at(j)] = absent;
        const auto column = columns_.column(j);
        for (std::int64_t p = 0; p < column.size(); ++p) --count_[at(column.column(p))];
    }
    for (std::size_t k = 0; k < kept; ++k) {
        for (std::size_t m = 0; m < kept; ++m) gram_[k * stride_ + m] = gram_[from[k] * stride_ + from[m]];
        diagonal_[k] = diagonal_[from[k]];
    }
    list_.resize(kept);
    diagonal_.resize(kept);
    moves_.resize(kept);
}

template <class Value>
bool GramDescent<Value>::include(std::span<const std::int32_t> features, const Curvatures &h, std::int64_t worth) {
    const std::size_t first = list_.size();
    for (const std::int32_t j : features) {
        if (has(j)) continue;
        place_[at(j)] = static_cast<std::int32_t>(list_.size());
        list_.push_back(j);
    }
    if (list_.size() == first) return true;
    if (list_.size() <= most_features) {
        const std::int64_t sparse = count_rows(first), dense = work_of_blocks(first);
        if (std::min(sparse, dense) <= worth) {
            touched_ += std::min(sparse, dense) / 2;
            grow(first, h,
                 dense < 2 * sparse); // blocks take half of that; as large as is worth it a matrix would come too soon
            return true;
        }
    }
    for (std::size_t k = first; k < list_.size(); ++k) place_[at(list_[k])] = absent;
    list_.resize(first);
    return false;
}

/// Products of dense blocks for the columns from place `first` on, in scattered ones that take as long.
template <class Value> std::int64_t GramDescent<Value>::work_of_blocks(std::size_t first) const {
    constexpr std::int64_t faster = 12;
    return static_cast<std::int64_t>(count_.size() * list_.size() * (list_.size() - first)) / faster;
}

/// Where each row ends among the entries of the columns from place `first` on; returns how many products G will need for them.
template <class Value> std::int64_t GramDescent<Value>::count_rows(std::size_t first) {
    offsets_.assign(count_.size() + 1, 0);
    for (std::size_t k = first; k < list_.size(); ++k) {
        const auto column = columns_.column(list_[k]);
        interruption_point(column.size());
        for (std::int64_t p = 0; p < column.size(); ++p) ++offsets_[at(column.column(p))];
    }
    std::int64_t products = 0, end = 0;
    for (std::size_t i = 0; i < count_.size(); ++i) {
        products += offsets_[i] * count_[i] + offsets_[i] * (offsets_[i] + 1) / 2;
        end += offsets_[i];
        offsets_[i] = end;
    }
    offsets_.back() = end;
    touched_ += end;
    return products;
}

/// Fills the rows from their ends, so that offsets_ holds their starts afterwards.
template <class Value> void GramDescent<Value>::collect_rows(std::size_t first) {
    places_.resize(at(offsets_.back()));
    values_.resize(at(offsets_.back()));
    for (std::size_t k = list_.size(); k-- > first;) {
        const auto column = columns_.column(list_[k]);
        interruption_point(column.size());
        for (std::int64_t p = 0; p < column.size(); ++p) {
            const auto place = at(--offsets_[at(column.column(p))]);
            places_[place] = static_cast<std::uint16_t>(k - first);
            values_[place] = column.values[p];
        }
    }
    touched_ += offsets_.back();
}

template <class Value> void GramDescent<Value>::reserve(std::size_t count) {
    if (count <= stride_) return;
    const std::size_t stride = std::max(count, std::min(2 * stride_, most_features));
    std::vector<double> larger(stride * stride);
    for (std::size_t k = 0; k < stride_; ++k) {
        std::copy_n(gram_.data() + k * stride_, stride_, larger.data() + k * stride);
    }
    gram_.swap(larger);
    stride_ = stride;
}

template <class Value> void GramDescent<Value>::grow(std::size_t first, const Curvatures &h, bool is_dense) {
    const std::size_t count = list_.size(), added = count - first;
    reserve(count);
    diagonal_.resize(count);
    moves_.resize(count, 0);
    next_.assign(count, 0);
    for (std::size_t k = 0; k < count; ++k) std::fill_n(gram_.data() + k * stride_ + first, added, 0.0);
    if (is_dense) {
        add_blocks(first, h);
    } else {
        collect_rows(first);
        ends_.assign(offsets_.begin(), offsets_.end() - 1);
        // blocks of rows whose entries stay in the second-level cache while all columns go by
        constexpr std::size_t block_bytes = 200'000;
        const auto rows = static_cast<std::int64_t>(count_.size());
        const std::size_t bytes = values_.size() * (sizeof(Value) + sizeof(std::uint16_t));
        const std::int64_t blocks = 1 + static_cast<std::int64_t>(bytes / block_bytes);
        for (std::int64_t block = 1; block <= blocks; ++block) add_products(first, rows * block / blocks, h);
    }
    for (std::size_t k = 0; k < count; ++k) {
        const std::size_t end = k < first ? count : k + 1;
        for (std::size_t m = first; m < end; ++m) gram_[m * stride_ + k] = gram_[k * stride_ + m];
        diagonal_[k] = gram_[k * stride_ + k];
    }
    for (std::size_t k = first; k < count; ++k) {
        const auto column = columns_.column(list_[k]);
        for (std::int64_t p = 0; p < column.size(); ++p) ++count_[at(column.column(p))];
    }
}

/// The same as add_products for all rows, for columns with few zeros: blocks of rows as dense columns.
template <class Value> void GramDescent<Value>::add_blocks(std::size_t first, const Curvatures &h) {
    constexpr std::size_t block = 256,
                          stride = block + 8; // powers of 2 apart, entries of a row would share a place in the cache
    const std::size_t count = list_.size(), added = count - first;
    const auto gram = newton_kernels().gram;
    std::vector<double> columns(count * stride), weighted(added * stride);
    constexpr std::size_t some = 256; // columns between two looks at an interrupt
    for (std::size_t begin = 0; begin < count_.size(); begin += block) {
        std::fill(columns.begin(), columns.end(), 0.0);
        for (std::size_t k = 0; k < count; ++k) {
            const auto column = columns_.column(list_[k]);
            double *const to = columns.data() + k * stride;
            std::int64_t p = next_[k];
            for (; p < column.size() && at(column.column(p)) < begin + block; ++p) {
                to[at(column.column(p)) - begin] = column.value(p);
            }
            touched_ += p - next_[k];
            next_[k] = p;
        }
        const std::size_t rows = std::min(block, count_.size() - begin);
        for (std::size_t k = 0; k < added; ++k) {
            const double *const from = columns.data() + (first + k) * stride;
            for (std::size_t i = 0; i < rows; ++i) weighted[k * stride + i] = from[i] * h[begin + i];
            std::fill(&weighted[k * stride + rows], &weighted[k * stride + block], 0.0);
        }
        // old ones by new ones, then of new ones by new ones the upper half
        for (std::size_t k = 0, end = 0; k < count; k = end) {
            const bool is_new = k >= first;
            const std::size_t left = is_new ? k - first : 0;
            end = std::min(k + some, is_new ? count : first);
            interruption_point(static_cast<std::int64_t>(some * added * block / 8));
            const ColumnBlock ones{columns.data() + k * stride, end - k, stride, block};
            const ColumnBlock others{weighted.data() + left * stride, added - left, stride, block};
            gram(ones, others, is_new ? 0 : first, gram_.data() + k * stride_ + first + left, stride_);
        }
    }
    for (std::size_t k = first; k < count; ++k) { // that was the upper half
        for (std::size_t m = first; m < k; ++m) gram_[k * stride_ + m] = gram_[m * stride_ + k];
    }
}

/// Adds what the rows before `end_row`, and not added before, give to the new columns of G; of new by new half is enough.
template <class Value>
void GramDescent<Value>::add_products(std::size_t first, std::int64_t end_row, const Curvatures &h) {
    const std::uint16_t *const places = places_.data();
    const Value *const values = values_.data();
    for (std::size_t k = 0; k < list_.size(); ++k) {
        double *const row = gram_.data() + k * stride_ + first;
        const auto column = columns_.column(list_[k]);
        std::int64_t p = next_[k], products = 0;
        for (; p < column.size() && column.column(p) < end_row; ++p) {
            const std::size_t i = at(column.column(p));
            const double a = column.value(p) * h[i];
            const std::int64_t begin = offsets_[i];
            const std::int64_t end =
                k < first ? offsets_[i + 1] : ++ends_[i]; // so far only columns up to k have passed here
            for (std::int64_t e = begin; e < end; ++e) row[places[e]] += a * static_cast<double>(values[e]);
            products += end - begin;
        }
        interruption_point(products); // a block of rows and one column: a fraction of a millisecond at most
        touched_ += p - next_[k];
        next_[k] = p;
    }
}

template <class Value>
void GramDescent<Value>::start(std::span<const std::int32_t> set, const std::vector<double> &x,
                               const std::vector<double> &u) {
    x_.assign(list_.size(), 0.0);
    q_.assign(list_.size(), 0.0);
    std::fill(moves_.begin(), moves_.end(), 0);
    for (const std::int32_t j : set) {
        if (!has(j)) continue;
        const auto k = at(place_[at(j)]);
        x_[k] = x[at(j)];
        q_[k] = u[at(j)];
        moves_[k] = 1;
    }
    start_ = x_;
}

template <class Value>
void GramDescent<Value>::join(std::span<const std::int32_t> features, const std::vector<double> &x,
                              const std::vector<double> &u) {
    x_.resize(list_.size(), 0.0);
    start_.resize(list_.size(), 0.0);
    q_.resize(list_.size(), 0.0);
    for (const std::int32_t j : features) {
        const auto k = at(place_[at(j)]);
        x_[k] = start_[k] = x[at(j)];
        q_[k] = u[at(j)];
        moves_[k] = 1;
    }
}

template <class Value> void GramDescent<Value>::finish(std::vector<double> &x, std::vector<double> &dz) {
    for (std::size_t k = 0; k < list_.size(); ++k) {
        if (x_[k] == start_[k]) continue;
        const auto column = columns_.column(list_[k]);
        interruption_point(column.size());
        axpy(x_[k] - start_[k], column, dz.data());
        touched_ += column.size();
        x[at(list_[k])] = x_[k];
    }
    start_ = x_;
}

template class GramDescent<float>;
template class GramDescent<double>;

} // namespace spdc
