// Options of the structs in a variant (losses, solvers), read from their fields() tables: a field of a new struct is an
// option of the command line without a line here.
#pragma once

#include "command_line.h"
#include "spdc/error.h"
#include "spdc/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace spdc::cli {

template <class Value> struct IsOptional : std::false_type {};
template <class Value> struct IsOptional<std::optional<Value>> : std::true_type {};

/// What the help says about a default. A value that the solver finds by itself is called auto.
template <class Value> std::string default_text(const Value &value) {
    if constexpr (IsOptional<Value>::value) {
        return value ? default_text(*value) : "auto";
    } else if constexpr (std::is_same_v<Value, bool>) {
        return value ? "on" : "off";
    } else if constexpr (std::is_arithmetic_v<Value>) {
        return fmt::format("{}", value);
    } else {
        return std::string(to_string(value));
    }
}

/// Reads an option's text into the field and checks its range.
template <class Value> void parse_field(const Field &field, const std::string &text, Value &value) {
    if constexpr (IsOptional<Value>::value) {
        if (text == "auto") return value.reset();
        parse_field(field, text, value.emplace());
    } else if constexpr (std::is_same_v<Value, bool>) {
        if (text != "on" && text != "off") fail_unknown(field.name, text, {"on", "off"});
        value = text == "on";
    } else if constexpr (std::is_integral_v<Value>) {
        const std::int64_t most = std::numeric_limits<std::int64_t>::max();
        const double least = std::max(field.minimum, -9e18);
        value = static_cast<Value>(parse_integer(field.name, text, static_cast<std::int64_t>(least), most));
        check_range(field, static_cast<double>(value));
    } else if constexpr (std::is_floating_point_v<Value>) {
        value = parse_number(field.name, text);
        check_range(field, value);
    } else {
        parse(text, value); // an enumeration: found beside its type
    }
}

/// Reads one option by its name; a name that the struct does not have is an Error that lists those it has.
template <class Options>
void parse_named(const std::string &owner, const std::string &name, const std::string &text, Options &options) {
    std::vector<std::string> known;
    bool is_found = false;
    Options::fields(options, [&](const Field &field, auto &value) {
        known.emplace_back(field.name);
        if (name != field.name) return;
        parse_field(field, text, value);
        is_found = true;
    });
    if (!is_found) fail_unknown("option of " + owner, name, known);
}

class FieldOptions {
  public:
    /// `kind` is what the structs are, for messages: "loss", "solver".
    explicit FieldOptions(std::string kind) : kind_(std::move(kind)) {}

    /// Takes up the fields of one struct, or of every struct in a variant.
    template <class Options> void collect_struct(const std::string &owner, const Options &defaults = Options()) {
        Options::fields(defaults, [&](const Field &field, const auto &value) {
            Entry &entry = find_or_add(field.name);
            if (entry.owners.empty()) entry.help = field.help;
            entry.owners.push_back(owner);
            entry.defaults.push_back(default_text(value));
        });
    }
    template <class Variant> void collect() {
        collect_all<Variant>(std::make_index_sequence<std::variant_size_v<Variant>>{});
    }

    void add_to(CommandLine &line) {
        for (Entry &entry : entries_) {
            std::string help = fmt::format("{} (default {})", entry.help, entry.default_text());
            if (!kind_.empty()) help += fmt::format(" [{}]", fmt::join(entry.owners, ", "));
            line.option("--" + entry.name, "VALUE", help, [&entry](const std::string &text) { entry.given = text; });
        }
    }

    /// Reads what was given into the struct that was chosen.
    template <class Options> void assign(Options &options) {
        Options::fields(options, [&](const Field &field, auto &value) {
            Entry &entry = find_or_add(field.name);
            if (entry.given) parse_field(field, *entry.given, value);
            entry.given.reset();
        });
    }

    /// Throws when something was given that the chosen struct does not have.
    void refuse_rest(std::string_view chosen) const {
        for (const Entry &entry : entries_) {
            if (!entry.given) continue;
            fail(ErrorKind::invalid_argument,
                 fmt::format("--{} is no option of the {} {}; it belongs to --{} {}", entry.name, kind_, chosen, kind_,
                             fmt::join(entry.owners, " or ")));
        }
    }

  private:
    struct Entry {
        std::string name, help;
        std::vector<std::string> owners, defaults; // of each owner
        std::optional<std::string> given;

        /// "0.5", or "uniform; sdca, asdca: permutation" where the owners differ from the first.
        std::string default_text() const {
            std::string text = defaults.front(), last = text;
            for (std::size_t k = 1; k < owners.size(); ++k) {
                if (defaults[k] == defaults.front()) continue;
                if (defaults[k] == last) {
                    text.insert(text.rfind(':'), ", " + owners[k]);
                } else {
                    text += fmt::format("; {}: {}", owners[k], defaults[k]);
                }
                last = defaults[k];
            }
            return text;
        }
    };

    Entry &find_or_add(const std::string &name) {
        const auto found =
            std::find_if(entries_.begin(), entries_.end(), [&](const Entry &e) { return e.name == name; });
        if (found != entries_.end()) return *found;
        entries_.push_back({name, {}, {}, {}, {}});
        return entries_.back();
    }

    template <class Variant, std::size_t... I> void collect_all(std::index_sequence<I...>) {
        (collect_struct<std::variant_alternative_t<I, Variant>>(
             std::string(std::variant_alternative_t<I, Variant>::name)),
         ...);
    }

    std::string kind_;
    std::vector<Entry> entries_;
};

} // namespace spdc::cli
