// How the library says that a call was wrong. A run that ends badly is a StopReason (stopping.h), never an Error.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace spdc {

enum class ErrorKind {
    invalid_argument, // an option or argument that no data could make right
    bad_file,         // a file that cannot be read, parsed or written; a target or label that does not fit the loss
    unsupported,      // a combination this build or this solver does not take
    communication,    // another process failed
    internal,         // a bug of ours
};

class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string &message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const noexcept { return kind_; }

  private:
    ErrorKind kind_;
};

/// The one way to throw: fail(ErrorKind::bad_file, "data.svm:3:7: ...").
[[noreturn]] void fail(ErrorKind kind, const std::string &message);

/// "unknown loss 'lgistic'; did you mean 'logistic'? known: hinge, logistic, ..." for a name not in `known`.
[[noreturn]] void fail_unknown(std::string_view what, std::string_view given, const std::vector<std::string> &known);

} // namespace spdc
