// The command line of one command: CLI11 with the help, the messages and the near misses of this program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App; // its headers take seconds to compile: command_line.cpp alone does
}

namespace spdc::cli {

/// Thrown when help was asked for.
struct HelpPage {
    std::string text;
};

/// Numbers as options give them; `name` is the option's. Throw Error(invalid_argument) unless all of the text is one.
double parse_number(const std::string &name, const std::string &text);
double parse_bound(const std::string &name, const std::string &text); // may be infinite
std::int64_t parse_integer(const std::string &name, const std::string &text, std::int64_t least, std::int64_t most);

class CommandLine {
  public:
    /// `name` as in "spdc train".
    CommandLine(const std::string &name, const std::string &description, const std::string &examples);
    ~CommandLine();

    using Setter = std::function<void(const std::string &)>;

    void positional(const std::string &name, std::string &value, const std::string &help, bool required = true);
    /// Options added from here on stand under this heading of the help.
    void group(const std::string &heading) { group_ = heading; }
    void option(const std::string &flags, const std::string &type, const std::string &help, Setter set);
    void option(const std::string &flags, const std::string &type, const std::string &help, std::string &value);
    /// An option that may be given many times.
    void repeatable(const std::string &flags, const std::string &type, const std::string &help,
                    std::vector<std::string> &values);
    void flag(const std::string &flags, const std::string &help, bool &value);

    /// Throws HelpPage, or Error(invalid_argument) with a sentence.
    void parse(std::vector<std::string> arguments);

  private:
    std::vector<std::string> known_options() const;
    std::string help() const;

    std::unique_ptr<CLI::App> app_;
    std::string group_;
};

} // namespace spdc::cli
