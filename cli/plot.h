// Curves on logarithmic axes, as an SVG file of our own writing.
#pragma once

#include <string>
#include <vector>

namespace spdc::cli {

struct Curve {
    std::string name;
    std::string colour; // as SVG takes it
    std::string dashes; // of the line, as SVG takes them; empty: none
    std::vector<double> x, y;
};

struct Panel {
    std::string title, x_label, y_label;
    std::vector<Curve> curves;
};

/// The colour of a solver, the same in every picture: eight that colour-blind readers can tell apart for those of the paper, and
/// others. An unknown name is grey.
std::string colour_of(const std::string &solver);

/// Panels in rows of so many, and one legend below with every name once. Points that are not positive are left out; y below
/// `floor` is drawn at it.
std::string draw(const std::vector<Panel> &panels, std::size_t columns, double floor);

} // namespace spdc::cli
