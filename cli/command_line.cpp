#include "command_line.h"

#include "spdc/error.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace spdc::cli {

namespace {

constexpr std::size_t help_column = 32;
constexpr std::size_t page_width = 110;

// CLI11 keeps line breaks and indents what follows them, but sets none itself.
std::string wrapped(const std::string &text, std::size_t width) {
    std::string out;
    std::size_t line = 0, begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        const std::size_t length = end - begin;
        if (line > 0 && line + 1 + length > width) {
            out += '\n';
            line = 0;
        } else if (line > 0) {
            out += ' ';
            ++line;
        }
        out.append(text, begin, length);
        line += length;
        begin = end + 1;
    }
    return out;
}

double parse_any(const std::string &name, const std::string &text) {
    double value = 0;
    const char *begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const char *end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(begin, end, value);
    if (stop != end || code == std::errc::invalid_argument || std::isnan(value)) {
        fail(ErrorKind::invalid_argument, fmt::format("--{} '{}': expected a number", name, text));
    }
    if (code == std::errc::result_out_of_range) {
        fail(ErrorKind::invalid_argument, fmt::format("--{} '{}': too large or too small for a double", name, text));
    }
    return value;
}

} // namespace

double parse_number(const std::string &name, const std::string &text) {
    const double value = parse_any(name, text);
    if (!std::isfinite(value)) {
        fail(ErrorKind::invalid_argument, fmt::format("--{} '{}': expected a finite number", name, text));
    }
    return value;
}

double parse_bound(const std::string &name, const std::string &text) { return parse_any(name, text); }

std::int64_t parse_integer(const std::string &name, const std::string &text, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const char *end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    if (stop != end || code != std::errc{} || value < least || value > most) {
        fail(ErrorKind::invalid_argument,
             fmt::format("--{} '{}': expected a whole number from {} to {}", name, text, least, most));
    }
    return value;
}

CommandLine::CommandLine(const std::string &name, const std::string &description, const std::string &examples)
    : app_(std::make_unique<CLI::App>(wrapped(description, page_width) + "\n", name)) {
    app_->get_formatter()->column_width(help_column);
    app_->get_formatter()->label("Positionals", "Arguments");
    app_->get_formatter()->label("REQUIRED", "");
    app_->allow_extras(); // refused in parse(), with the near miss
    if (!examples.empty()) app_->footer("\nExamples:\n" + examples);
}

CommandLine::~CommandLine() = default;

void CommandLine::positional(const std::string &name, std::string &value, const std::string &help, bool required) {
    app_->add_option(name, value, wrapped(help, page_width - help_column))->required(required)->type_name("");
}

void CommandLine::option(const std::string &flags, const std::string &type, const std::string &help, Setter set) {
    app_->add_option_function<std::string>(flags, std::move(set), wrapped(help, page_width - help_column))
        ->type_name(type)
        ->group(group_);
}

void CommandLine::option(const std::string &flags, const std::string &type, const std::string &help,
                         std::string &value) {
    option(flags, type, help, [&value](const std::string &text) { value = text; });
}

void CommandLine::repeatable(const std::string &flags, const std::string &type, const std::string &help,
                             std::vector<std::string> &values) {
    app_->add_option(flags, values, wrapped(help, page_width - help_column))
        ->type_name(type)
        ->group(group_)
        ->allow_extra_args(false); // one value each time: the next word may be the data
}

void CommandLine::flag(const std::string &flags, const std::string &help, bool &value) {
    app_->add_flag(flags, value, wrapped(help, page_width - help_column))->group(group_);
}

std::vector<std::string> CommandLine::known_options() const {
    std::vector<std::string> names;
    for (const CLI::Option *option : app_->get_options()) {
        for (const std::string &name : option->get_lnames()) names.push_back("--" + name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

// CLI11's page without its double empty lines.
std::string CommandLine::help() const {
    std::string page = app_->help();
    for (std::size_t at = page.find("\n\n\n"); at != page.npos; at = page.find("\n\n\n", at)) page.erase(at, 1);
    return page;
}

void CommandLine::parse(std::vector<std::string> arguments) {
    app_->set_help_flag("-h,--help", "print this page")->group(group_); // last, so that the page ends with it
    std::reverse(arguments.begin(), arguments.end());                   // as CLI11 takes them
    try {
        app_->parse(std::move(arguments));
    } catch (const CLI::CallForHelp &) {
        throw HelpPage{help()};
    } catch (const CLI::ParseError &error) {
        fail(ErrorKind::invalid_argument, fmt::format("{}; see {} --help", error.what(), app_->get_name()));
    }
    const std::vector<std::string> extras = app_->remaining();
    if (extras.empty()) return;
    const auto first = std::find_if(extras.begin(), extras.end(), [](const auto &text) { return text[0] == '-'; });
    if (first == extras.end()) {
        fail(ErrorKind::invalid_argument,
             fmt::format("unexpected argument '{}'; see {} --help", extras.front(), app_->get_name()));
    }
    fail_unknown("option", first->substr(0, first->find('=')), known_options());
}

} // namespace spdc::cli
