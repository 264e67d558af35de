#include "plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace spdc::cli {

namespace {

constexpr double width = 420, height = 300;                    // of a panel
constexpr double left = 64, right = 12, top = 28, bottom = 44; // margins inside it
constexpr double legend_line = 20;

std::string escaped(const std::string &text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else
            out += c;
    }
    return out;
}

/// A logarithmic axis over [least, most], from `begin` to `end` on the paper.
struct Axis {
    double least = 0, most = 0, begin = 0, end = 0;

    double at(double value) const { return begin + (end - begin) * std::log(value / least) / std::log(most / least); }
    /// Powers of ten, and 2 and 5 times them where there are few.
    std::vector<double> ticks() const {
        const double decades = std::log10(most / least);
        const int stride = decades > 9 ? 2 : 1;
        std::vector<double> found;
        for (int power = static_cast<int>(std::floor(std::log10(least))); power <= std::log10(most) + 1; ++power) {
            for (const double digit : {1.0, 2.0, 5.0}) {
                const double value = digit * std::pow(10, power);
                if (digit > 1 && decades > 2.5) continue;
                if (power % stride == 0 && value >= least * 0.999 && value <= most * 1.001) found.push_back(value);
            }
        }
        return found;
    }
};

std::string tick_text(double value) {
    if (value >= 0.01 && value < 1e5) return fmt::format("{:g}", value);
    const double power = std::floor(std::log10(value) + 1e-9);
    return fmt::format("{:g}e{:g}", std::round(value / std::pow(10, power)), power);
}

struct Range {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    void add(double value) {
        least = std::min(least, value);
        most = std::max(most, value);
    }
    void widen() { // so that an axis has a length
        if (!(most > 0)) least = most = 1;
        if (most / least < 1.5) {
            least /= 1.5;
            most *= 1.5;
        }
    }
};

bool is_shown(double x, double y) { return x > 0 && y >= 0 && std::isfinite(x) && std::isfinite(y); }

std::string text_at(double x, double y, const char *anchor, const std::string &text, const char *more = "") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more, text);
}

std::string grid(const Axis &x, const Axis &y) {
    std::string svg;
    for (const double tick : x.ticks()) {
        svg += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#dddddd\"/>\n", x.at(tick), y.begin, y.end);
        svg += text_at(x.at(tick), y.begin + 16, "middle", tick_text(tick));
    }
    for (const double tick : y.ticks()) {
        svg += fmt::format("<path d=\"M{1:.1f} {0:.1f}H{2:.1f}\" stroke=\"#dddddd\"/>\n", y.at(tick), x.begin, x.end);
        svg += text_at(x.begin - 6, y.at(tick) + 4, "end", tick_text(tick));
    }
    return svg + fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
                             "stroke=\"#666666\"/>\n",
                             x.begin, y.end, x.end - x.begin, y.begin - y.end);
}

std::string line_style(const Curve &curve) {
    std::string style = fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"", curve.colour);
    if (!curve.dashes.empty()) style += fmt::format(" stroke-dasharray=\"{}\"", curve.dashes);
    return style;
}

std::string panel_svg(const Panel &panel, double x0, double y0, double floor) {
    Range xs, ys;
    for (const Curve &curve : panel.curves) {
        for (std::size_t k = 0; k < curve.x.size(); ++k) {
            if (!is_shown(curve.x[k], curve.y[k])) continue;
            xs.add(curve.x[k]);
            ys.add(std::max(curve.y[k], floor));
        }
    }
    xs.widen();
    ys.widen();
    const Axis x{xs.least, xs.most, x0 + left, x0 + width - right};
    const Axis y{ys.least, ys.most, y0 + height - bottom, y0 + top};
    std::string svg = grid(x, y);
    for (const Curve &curve : panel.curves) {
        std::string path;
        double end_x = 0, end_y = 0;
        for (std::size_t k = 0; k < curve.x.size(); ++k) {
            if (!is_shown(curve.x[k], curve.y[k])) continue;
            end_x = x.at(curve.x[k]);
            end_y = y.at(std::max(curve.y[k], floor));
            path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", end_x, end_y);
        }
        if (path.empty()) continue;
        svg += fmt::format("<path d=\"{}\" {}/>\n", path, line_style(curve));
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", end_x, end_y, curve.colour);
    }
    const double middle = 0.5 * (y.begin + y.end);
    svg += text_at(0.5 * (x.begin + x.end), y0 + 18, "middle", escaped(panel.title), " font-weight=\"bold\"");
    svg += text_at(0.5 * (x.begin + x.end), y0 + height - 8, "middle", escaped(panel.x_label));
    const std::string turn = fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", x0 + 14, middle);
    return svg + text_at(x0 + 14, middle, "middle", escaped(panel.y_label), turn.c_str());
}

} // namespace

std::string colour_of(const std::string &solver) {
    // Okabe and Ito's eight (2008) for the paper's methods and ours, then Tol's muted ones (2021)
    static const std::map<std::string, std::string> colours = {
        {"auto", "#000000"},
        {"spdc", "#D55E00"},
        {"accelerated_gradient", "#56B4E9"},
        {"lbfgs", "#0072B2"},
        {"sag", "#009E73"},
        {"sdca", "#E69F00"},
        {"asdca", "#CC79A7"},
        {"chambolle_pock", "#332288"},
        {"saga", "#117733"},
        {"svrg", "#44AA99"},
        {"asdca_minibatch", "#AA4499"},
        {"apcg", "#882255"},
        {"rpdg", "#999933"},
        {"sdca_admm", "#DDCC77"},
        {"spdc_fast", "#661100"},
        {"newton", "#6699CC"},
        {"newton_cg", "#888888"},
        {"hybrid", "#AA4466"},
        {"working_set", "#4477AA"},
    };
    const auto found = colours.find(solver);
    return found == colours.end() ? "#777777" : found->second;
}

std::string draw(const std::vector<Panel> &panels, std::size_t columns, double floor) {
    std::vector<Curve> legend; // every name once
    for (const Panel &panel : panels) {
        for (const Curve &curve : panel.curves) {
            const auto is_same = [&](const Curve &other) { return other.name == curve.name; };
            if (std::none_of(legend.begin(), legend.end(), is_same)) legend.push_back(curve);
        }
    }
    const std::size_t rows = (panels.size() + columns - 1) / columns;
    const double full_width = width * static_cast<double>(columns);
    std::size_t longest = 0;
    for (const Curve &curve : legend) longest = std::max(longest, curve.name.size());
    const double legend_item = 50 + 7 * static_cast<double>(longest);
    const auto per_line = std::max<std::size_t>(1, static_cast<std::size_t>((full_width - left) / legend_item));
    const std::size_t lines = (legend.size() + per_line - 1) / per_line;
    const double panels_height = height * static_cast<double>(rows);
    const double full_height = panels_height + legend_line * static_cast<double>(lines) + 12;
    std::string svg = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                                  "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
                                  "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                                  full_width, full_height);
    for (std::size_t k = 0; k < panels.size(); ++k) {
        svg += panel_svg(panels[k], width * static_cast<double>(k % columns), height * static_cast<double>(k / columns),
                         floor);
    }
    for (std::size_t k = 0; k < legend.size(); ++k) {
        const double x = left + legend_item * static_cast<double>(k % per_line);
        const double y = panels_height + legend_line * (static_cast<double>(k / per_line) + 0.6);
        svg += fmt::format("<path d=\"M{:.1f} {:.1f}h28\" {}/>\n", x, y, line_style(legend[k]));
        svg += text_at(x + 34, y + 4, "start", escaped(legend[k].name));
    }
    return svg + "</svg>\n";
}

} // namespace spdc::cli
