#include "presolve.h"

#include "huge_pages.h"
#include "parallel.h"
#include "solvers/methods.h"
#include "sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t most_items =
    std::numeric_limits<std::int32_t>::max() / 2; // rows or columns: numbers are 32 bits wide

// ---- Hashing: what is equal has equal hashes; what has equal hashes is compared.

std::uint64_t mixed(std::uint64_t h, std::uint64_t word) {
    h = (h ^ word) * 0x9e3779b97f4a7c15U;
    return h ^ (h >> 32);
}
std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v + 0.0); } // -0 and 0 are one number

template <class Row> std::uint64_t row_hash(const Row &row, double target) {
    std::uint64_t h = bits(target);
    const std::int64_t size = row.size();
    for (std::int64_t p = 0; p < size; ++p) {
        h = mixed(h, bits(row.value(p)) + static_cast<std::uint64_t>(row.column(p)) * 0xbf58476d1ce4e5b9U);
    }
    return h;
}

template <class Row> bool are_equal(const Row &a, const Row &b) {
    if (a.size() != b.size()) return false;
    for (std::int64_t p = 0; p < a.size(); ++p) {
        if (a.column(p) != b.column(p) || a.value(p) != b.value(p)) return false;
    }
    return true;
}

template <class Row> bool is_empty(const Row &row) {
    for (std::int64_t p = 0; p < row.size(); ++p) {
        if (row.value(p) != 0) return false;
    }
    return true;
}

/// Whether a b = c d in real numbers: the rounded products and what they left out are the same. Products of floats are exact; a
/// product near the ends of the range is never equal to anything, because its rest might be lost.
bool products_are_equal(double a, double b, double c, double d) {
    const double left = a * b, right = c * d;
    if (left != right || !(std::fabs(left) > 1e-280 && std::fabs(left) < 1e300)) return false;
    return std::fma(a, b, -left) == std::fma(c, d, -right);
}

/// Groups of equal items: the first item of each, found by hash in a table with open addressing.
class Groups {
  public:
    explicit Groups(std::size_t items) : slots_(std::bit_ceil(2 * items + 2), -1), mask_(slots_.size() - 1) {}

    /// The group of an item: the first with that hash for which same(first item) holds, else a new one.
    template <class Same> std::int32_t place(std::int32_t item, std::uint64_t hash, Same &&same) {
        for (std::size_t slot = start(hash);; ++slot) {
            std::int32_t &group = slots_[slot & mask_];
            if (group < 0) {
                group = static_cast<std::int32_t>(firsts_.size());
                firsts_.push_back(item);
                hashes_.push_back(hash);
                return group;
            }
            if (hashes_[at(group)] == hash && same(firsts_[at(group)])) return group;
        }
    }
    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[start(hash) & mask_], 1); }
    std::size_t size() const { return firsts_.size(); }
    std::vector<std::int32_t> take_firsts() { return std::move(firsts_); }

  private:
    static std::size_t start(std::uint64_t hash) { return (hash * 0x94d049bb133111ebU) >> 20; }

    std::vector<std::int32_t, HugePageAllocator<std::int32_t>> slots_;
    std::size_t mask_;
    std::vector<std::int32_t> firsts_;
    std::vector<std::uint64_t> hashes_;
};

// ---- Samples: one block of sixteen rows or columns out of sixteen. Twins that stand side by side fall into it together, others
// with one chance in sixteen.

constexpr double sampled_share = 1.0 / 16;

struct Sample {
    static bool has(std::int64_t i) { return ((i >> 4) & 15) == 5; }
    static std::int64_t slot(std::int64_t i) { return ((i >> 8) << 4) | (i & 15); } // without holes
    static std::int64_t item(std::int64_t slot) { return ((slot >> 4) << 8) | (5 << 4) | (slot & 15); }
    static std::int64_t slots(std::int64_t count) { return ((count >> 8) + 1) << 4; }
};

struct Everything {
    static bool has(std::int64_t) { return true; }
    static std::int64_t slot(std::int64_t i) { return i; }
    static std::int64_t item(std::int64_t slot) { return slot; }
    static std::int64_t slots(std::int64_t count) { return count; }
};

/// A fifth of the items, if they are twins far from each other, gives this share of twins in a sample; triples and more give more.
constexpr double promising_share = 0.2 * sampled_share;

bool is_promising(std::size_t items, std::size_t groups) {
    return items > groups && static_cast<double>(items - groups) >= promising_share * static_cast<double>(items);
}

// ---- Rows

struct Rows {
    std::vector<std::int32_t> first, of; // first row of a group; group of a row
};

/// Of the first `count` rows. A chunk of hashes at a time is computed by all threads.
template <class Part, class Matrix, class Key>
Rows group_rows(const Matrix &matrix, const Key &target, std::int64_t count, Team &team) {
    constexpr std::int64_t piece = 256, chunk = 128 * piece;
    const std::int64_t slots = Part::slots(count);
    const double work = 8 * static_cast<double>(matrix.nonzeros()) / static_cast<double>(matrix.rows()); // far apart
    std::vector<std::uint64_t> hashes(at(std::min(slots, chunk)));
    Rows rows;
    Groups groups(at(slots));
    rows.of.reserve(at(slots));
    for (std::int64_t first_slot = 0; first_slot < slots; first_slot += chunk) {
        const std::int64_t end = std::min(first_slot + chunk, slots);
        team.for_each((end - first_slot + piece - 1) / piece, work * static_cast<double>(end - first_slot),
                      [&](std::int64_t k) {
                          const std::int64_t begin = first_slot + k * piece;
                          for (std::int64_t slot = begin; slot < std::min(begin + piece, end); ++slot) {
                              const std::int64_t i = Part::item(slot);
                              if (i < count) hashes[at(slot - first_slot)] = row_hash(matrix.row(i), target(i));
                          }
                      });
        for (std::int64_t slot = first_slot; slot < end && Part::item(slot) < count; ++slot) {
            const auto i = static_cast<std::int32_t>(Part::item(slot));
            interruption_point(16 + matrix.row(i).size());
            rows.of.push_back(groups.place(i, hashes[at(slot - first_slot)], [&](std::int32_t first) {
                return target(first) == target(i) && are_equal(matrix.row(first), matrix.row(i));
            }));
        }
    }
    rows.first = groups.take_firsts();
    return rows;
}

// ---- Columns

/// What a pass over the rows learns of a column. Exactly proportional columns have the same quotients value/first, because division
/// rounds equal numbers equally, and so the same hash.
template <class Value> struct Column {
    std::uint64_t hash = 0;
    Value first = 0;
    std::int32_t entries = 0;
};

template <class Value> using ColumnList = std::vector<Column<Value>, HugePageAllocator<Column<Value>>>;

constexpr int ahead = 16; // entries: columns come in no order that a processor could foresee

template <class Part, class Matrix> auto describe_columns(const Matrix &matrix, std::span<const std::int32_t> rows) {
    using Value = typename Matrix::value_type;
    ColumnList<Value> columns(at(Part::slots(matrix.cols())));
    for (const std::int32_t i : rows) {
        const auto row = matrix.row(i);
        interruption_point(row.size());
        const std::uint64_t place = static_cast<std::uint64_t>(i) * 0xbf58476d1ce4e5b9U;
        for (std::int64_t p = 0; p < row.size(); ++p) {
            if constexpr (std::is_same_v<Part, Everything>) {
                if (p + ahead < row.size()) __builtin_prefetch(&columns[at(row.column(p + ahead))], 1);
            }
            if (!Part::has(row.column(p)) || row.value(p) == 0) continue;
            Column<Value> &column = columns[at(Part::slot(row.column(p)))];
            if (column.entries++ == 0) column.first = row.values[p];
            column.hash = mixed(column.hash, bits(row.value(p) / static_cast<double>(column.first)) + place);
        }
    }
    return columns;
}

/// Which columns are merged, and by how much.
struct Columns {
    std::vector<std::int32_t> first, of; // first column of a group; group of a column, -1 when it is empty
    std::int64_t entries = 0;            // in the first columns
    std::size_t filled = 0;              // columns that are not empty
};

/// `alone`: columns that are known not to be proportional to the first of their hash.
template <class Value>
Columns group_columns(const ColumnList<Value> &columns, std::span<const double> factors, bool merge,
                      const std::vector<bool> &alone) {
    Columns found;
    Groups groups(columns.size());
    found.of.reserve(columns.size());
    const auto may_merge = [&](std::size_t j) { return merge && (alone.empty() || !alone[j]); };
    const auto hash_of = [&](std::size_t j) {
        return mixed(columns[j].hash, may_merge(j) ? static_cast<std::uint64_t>(columns[j].entries) : j);
    };
    for (std::size_t j = 0; j < columns.size(); ++j) {
        if (j + ahead < columns.size()) groups.prefetch(hash_of(j + ahead));
        interruption_point(16);
        const Column<Value> &column = columns[j];
        if (column.entries == 0) {
            found.of.push_back(-1);
            continue;
        }
        const std::size_t before = groups.size();
        found.of.push_back(groups.place(static_cast<std::int32_t>(j), hash_of(j), [&](std::int32_t first) {
            const bool same_factor = factors.empty() || factors[at(first)] == factors[j];
            const double r =
                std::fabs(static_cast<double>(column.first) / static_cast<double>(columns[at(first)].first));
            return may_merge(j) && same_factor && 1e-100 < r && r < 1e100 && // r^2 must be a number
                   columns[at(first)].entries == column.entries;             // values: see copy_columns
        }));
        ++found.filled;
        if (groups.size() > before) found.entries += column.entries;
    }
    found.first = groups.take_firsts();
    return found;
}

/// r_j of every column of a group, and their |r|.
template <class Value>
void set_shares(const ColumnList<Value> &columns, const Columns &groups, std::vector<double> &share,
                std::vector<double> &norm) {
    share.assign(columns.size(), 0.0);
    norm.assign(groups.first.size(), 0.0);
    for (std::size_t j = 0; j < columns.size(); ++j) {
        if (groups.of[j] < 0) continue;
        const auto k = at(groups.of[j]);
        share[j] = static_cast<double>(columns[j].first) / static_cast<double>(columns[at(groups.first[k])].first);
        norm[k] += share[j] * share[j];
    }
    for (double &v : norm) v = std::sqrt(v);
    for (std::size_t j = 0; j < columns.size(); ++j) {
        if (groups.of[j] >= 0) share[j] /= norm[at(groups.of[j])];
    }
}

template <class Out> struct CsrRows {
    template <class T> using Array = std::vector<T, UnfilledHugePageAllocator<T>>;
    struct Owner {
        std::vector<std::int64_t> offsets{0};
        Array<std::int32_t> columns;
        Array<Out> values;
    };
    std::shared_ptr<Owner> owner = std::make_shared<Owner>();
    std::size_t next = 0;
    CsrRows(std::size_t rows, std::size_t, std::int64_t entries) {
        owner->offsets.reserve(rows + 1);
        owner->columns.resize(at(entries));
        owner->values.resize(at(entries));
    }
    void put(std::int32_t column, double value) {
        owner->columns[next] = column;
        owner->values[next++] = static_cast<Out>(value);
    }
    void end_row() { owner->offsets.push_back(static_cast<std::int64_t>(next)); }
    AnyMatrix take(std::int64_t, std::int64_t cols) {
        return CsrMatrix<Out>(cols, owner->offsets, owner->columns, owner->values, owner);
    }
};

template <class Out> struct DenseRows {
    std::vector<Out> values;
    std::size_t cols, row = 0;
    DenseRows(std::size_t rows, std::size_t cols_, std::int64_t) : values(rows * cols_), cols(cols_) {}
    void put(std::int32_t column, double value) { values[row * cols + at(column)] = static_cast<Out>(value); }
    void end_row() { ++row; }
    AnyMatrix take(std::int64_t rows, std::int64_t) {
        return DenseMatrix<Out>::own(rows, static_cast<std::int64_t>(cols), std::move(values));
    }
};

/// Copies the first column of every group, times |r|, and compares the others with it: same rows, and value * first of the one =
/// value * first of the other. Columns for which that fails are added to `alone`, and there is no matrix.
template <class Out, class Matrix>
std::optional<AnyMatrix> copy_columns(const Matrix &matrix, std::span<const std::int32_t> rows, const Columns &groups,
                                      std::span<const Column<typename Matrix::value_type>> columns,
                                      std::span<const double> norm, std::vector<bool> &alone) {
    struct alignas(32) First {
        std::int32_t column = 0, row = -1;
        double value = 0, first = 0, norm = 1; // first = 0: there is no other value to compare
    };
    std::vector<First, HugePageAllocator<First>> firsts(groups.first.size());
    for (std::size_t k = 0; k < firsts.size(); ++k) {
        const auto &column = columns[at(groups.first[k])];
        firsts[k] = {groups.first[k], -1, 0, column.entries > 1 ? static_cast<double>(column.first) : 0.0, norm[k]};
    }
    constexpr bool is_sparse = requires { matrix.offsets(); };
    std::conditional_t<is_sparse, CsrRows<Out>, DenseRows<Out>> copy(rows.size(), firsts.size(), groups.entries);
    bool all_proportional = true;
    for (const std::int32_t i : rows) {
        const auto row = matrix.row(i);
        interruption_point(row.size());
        for (std::int64_t p = 0; p < row.size(); ++p) {
            if (p + 2 * ahead < row.size()) __builtin_prefetch(&groups.of[at(row.column(p + 2 * ahead))]);
            if (p + ahead < row.size()) __builtin_prefetch(firsts.data() + groups.of[at(row.column(p + ahead))], 1);
            const double value = row.value(p);
            if (value == 0) continue;
            const std::int32_t j = row.column(p), k = groups.of[at(j)];
            First &first = firsts[at(k)];
            if (first.column == j) {
                first.row = i;
                first.value = value;
                copy.put(k, value * first.norm);
            } else if (first.row != i ||
                       (first.first != 0 && !products_are_equal(value, first.first, first.value,
                                                                static_cast<double>(columns[at(j)].first)))) {
                if (alone.empty()) alone.resize(columns.size());
                alone[at(j)] = true;
                all_proportional = false;
            }
        }
        copy.end_row();
    }
    if (!all_proportional) return std::nullopt;
    return copy.take(static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(firsts.size()));
}

// ---- What is worth it

/// Whether data, reduced copy and a solver's shuffled copy of that stay within 2.1 times the data and 64 bytes for every row, 48 for
/// every feature, of which a solver needs less when there are fewer.
template <class Matrix, class Out>
bool fits(const Matrix &matrix, std::int64_t entries, std::int64_t rows, std::int64_t columns) {
    const auto bytes = [](std::int64_t count, std::size_t value) {
        return static_cast<double>(count) * static_cast<double>(value + 4);
    };
    return 2 * bytes(entries, sizeof(Out)) <= 1.1 * bytes(matrix.nonzeros(), sizeof(typename Matrix::value_type)) +
                                                  64 * static_cast<double>(matrix.rows() - rows) +
                                                  48 * static_cast<double>(matrix.cols() - columns);
}

/// The groups of equal rows; none when they would not pay.
template <class Matrix> Rows find_rows(const Problem &problem, const Matrix &matrix, bool must_pay, Team &team) {
    const std::int64_t n = matrix.rows();
    const auto target = [&](std::int64_t i) {
        return !problem.has_intercept() && is_empty(matrix.row(i)) ? 0.0 : problem.raw_targets()[at(i)];
    };
    if (must_pay) {
        if (n <= 20 * matrix.cols()) return {};
        // as many twins as it takes would show in the first quarter of the sample, too
        const Rows quarter = group_rows<Sample>(matrix, target, n / 4, team);
        if (quarter.of.size() >= 2000 && quarter.first.size() == quarter.of.size()) return {};
        const Rows sample = group_rows<Sample>(matrix, target, n, team);
        if (!is_promising(sample.of.size(), sample.first.size())) return {};
    }
    Rows rows = group_rows<Everything>(matrix, target, n, team);
    const auto left = static_cast<std::int64_t>(rows.first.size());
    if (left == n) return {};
    if (!must_pay) return rows;
    std::int64_t entries = 0;
    for (const std::int32_t i : rows.first) entries += matrix.row(i).size();
    const bool pays =
        10 * left <= 8 * n && fits<Matrix, typename Matrix::value_type>(matrix, entries, left, matrix.cols());
    return pays ? rows : Rows{};
}

/// Whether all penalties are l2: then columns may be merged, not only left out.
bool merges_columns(const Problem &problem) { return std::holds_alternative<L2>(problem.regularizer().variant()); }

/// Whether a look at the columns is worth its time, that of some twelve passes. Where rows have one value, merged columns take that
/// from them, and little is gained.
bool columns_may_pay(const Problem &problem, int threads) {
    if (!merges_columns(problem) || problem.features() <= problem.rows()) return false;
    return passes_on_text(problem) >= (problem.row_values(threads).empty() ? 25 : 150);
}

template <class Matrix> bool columns_look_promising(const Matrix &matrix, std::span<const std::int32_t> rows) {
    const auto sample = describe_columns<Sample>(matrix, rows);
    const Columns groups = group_columns(sample, {}, true, {});
    return is_promising(groups.filled, groups.first.size());
}

/// The matrix without empty columns and with one column for proportional ones, on these rows; none when nothing is to be gained.
template <class Matrix>
std::optional<AnyMatrix> reduce_columns(const Problem &problem, const Matrix &matrix,
                                        std::span<const std::int32_t> rows, bool must_pay, Columns &groups,
                                        std::vector<double> &share) {
    using Value = typename Matrix::value_type;
    if (must_pay && !columns_look_promising(matrix, rows)) return std::nullopt;
    const ColumnList<Value> columns = describe_columns<Everything>(matrix, rows);
    std::vector<double> norm;
    std::vector<bool> alone;
    for (;;) { // a second round only when values that looked proportional are not
        groups = group_columns(columns, problem.penalty_factors(), merges_columns(problem), alone);
        const std::size_t left = groups.first.size();
        if (left == 0 || left == columns.size()) return std::nullopt;
        if (must_pay && 2 * left > groups.filled && 10 * groups.entries > 9 * matrix.nonzeros()) return std::nullopt;
        if (must_pay && !fits<Matrix, double>(matrix, groups.entries, static_cast<std::int64_t>(rows.size()),
                                              static_cast<std::int64_t>(left))) {
            return std::nullopt;
        }
        set_shares(columns, groups, share, norm);
        // |r| a is rounded: to 1e-16, not to a float's 6e-8, which would show in the gaps of losses with kinks
        std::optional<AnyMatrix> copy =
            left < groups.filled
                ? copy_columns<double>(matrix, rows, groups, std::span<const Column<Value>>(columns), norm, alone)
                : copy_columns<Value>(matrix, rows, groups, std::span<const Column<Value>>(columns), norm, alone);
        if (copy) return copy;
    }
}

/// The method for the reduced problem behind the sizes of the original one. Passes are those of the method: every row that is left
/// is visited once in each.
class LiftedMethod final : public Method {
  public:
    LiftedMethod(const Presolved &presolved, const Problem &single, std::int64_t output,
                 const Presolved::MakeMethod &make)
        : presolved_(presolved), single_(single), reduced_(presolved.problem().output(output)),
          method_(make(reduced_)) {}

    void advance(double passes) override { method_->advance(passes); }
    double passes() const override { return method_->passes(); }
    void point(std::vector<double> &x, std::vector<double> &y) override {
        method_->point(x, y);
        presolved_.lift(single_, x, y);
    }
    void aim(double tolerance) override { method_->aim(tolerance); }
    bool has_point() const override { return method_->has_point(); }
    bool exhausted() const override { return method_->exhausted(); }
    void certified(const Found &found) override {
        const std::vector<double> x = presolved_.restrict_columns(found.x),
                                  z = presolved_.restrict_rows(found.predictions);
        method_->certified({found.certificate, x, z});
    }
    double estimated_gap() const override { return method_->estimated_gap(); }
    double dual_value() const override { return method_->dual_value(); }
    double omega() const override { return method_->omega(); }
    std::vector<OmegaChange> take_omega_changes() override { return method_->take_omega_changes(); }
    std::int64_t coordinates_touched() const override { return method_->coordinates_touched(); }
    int threads() const override { return method_->threads(); }

  private:
    const Presolved &presolved_;
    const Problem &single_;
    const Problem reduced_;
    const std::unique_ptr<Method> method_;
};

} // namespace

std::string_view to_string(Presolve presolve) {
    switch (presolve) {
    case Presolve::automatic: return "auto";
    case Presolve::on: return "on";
    case Presolve::off: return "off";
    }
    return "auto";
}

void parse(const std::string &name, Presolve &presolve) {
    for (const Presolve value : {Presolve::automatic, Presolve::on, Presolve::off}) {
        if (name != to_string(value)) continue;
        presolve = value;
        return;
    }
    fail_unknown("presolve", name, {"auto", "on", "off"});
}

Presolved::Presolved(const Problem &problem, Presolve when, Team &team) : original_(problem) {
    if (when == Presolve::off || std::max(problem.rows(), problem.features()) > most_items) return;
    std::visit([&](const auto &matrix) { reduce(matrix, when == Presolve::automatic, team); }, problem.matrix());
}

template <class Matrix> void Presolved::reduce(const Matrix &matrix, bool must_pay, Team &team) {
    const Rows rows = find_rows(original_, matrix, must_pay, team);
    first_row_ = rows.first;
    row_of_ = rows.of;
    const bool fewer_rows = !row_of_.empty(), maybe_columns = !must_pay || columns_may_pay(original_, team.size());
    if (!fewer_rows && !maybe_columns) return;
    if (!fewer_rows) {
        first_row_.resize(at(matrix.rows()));
        std::iota(first_row_.begin(), first_row_.end(), 0);
    } else if (!original_.has_intercept()) {
        for (std::int64_t i = 0; i < matrix.rows(); ++i) {
            if (is_empty(matrix.row(i))) empty_rows_.push_back(static_cast<std::int32_t>(i));
        }
    }
    Columns columns;
    std::optional<AnyMatrix> smaller;
    if (maybe_columns) smaller = reduce_columns(original_, matrix, first_row_, must_pay, columns, share_);
    if (smaller) column_of_ = std::move(columns.of);
    team.check();
    if (!smaller && !fewer_rows) return;
    if (!smaller)
        smaller = select_rows(original_.matrix(), std::vector<std::int64_t>(first_row_.begin(), first_row_.end()));

    std::vector<double> importance(first_row_.size(), 0.0),
        factors(original_.penalty_factors().begin(), original_.penalty_factors().end());
    for (std::int64_t i = 0; i < matrix.rows(); ++i) {
        importance[fewer_rows ? at(row_of_[at(i)]) : at(i)] += original_.importance(i);
    }
    if (!column_of_.empty() && !factors.empty()) {
        std::vector<double> kept;
        for (const std::int32_t j : columns.first) kept.push_back(factors[at(j)]);
        factors = std::move(kept);
    }
    reduced_ = original_.on(std::move(*smaller), first_row_, std::move(importance), std::move(factors));
}

std::string Presolved::said() const {
    if (!reduced_) return {};
    const auto kept = [](std::int64_t left, std::int64_t all, const char *what) {
        return left < all ? fmt::format("{} of {} {}", left, all, what) : std::string();
    };
    const std::string rows = kept(reduced_->rows(), original_.rows(), "rows");
    const std::string columns = kept(reduced_->features(), original_.features(), "features");
    return fmt::format("; presolve left {}{}{}", rows, rows.empty() || columns.empty() ? "" : " and ", columns);
}

std::unique_ptr<Method> Presolved::method(const Problem &single, std::int64_t output, const MakeMethod &make) const {
    if (!reduced_) return make(single);
    return std::make_unique<LiftedMethod>(*this, single, output, make);
}

void Presolved::lift(const Problem &single, std::vector<double> &x, std::vector<double> &y) const {
    if (!column_of_.empty()) {
        std::vector<double> all(at(single.dimension()), 0.0);
        for (std::size_t j = 0; j < column_of_.size(); ++j) {
            if (column_of_[j] >= 0) all[j] = share_[j] * x[at(column_of_[j])];
        }
        if (single.has_intercept()) all.back() = x.back();
        x = std::move(all);
    }
    if (row_of_.empty()) return;
    std::vector<double> all(row_of_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = y[at(row_of_[i])];
    for (const std::int32_t i : empty_rows_) all[at(i)] = single.loss().derivative(0, single.targets()[at(i)]);
    y = std::move(all);
}

std::vector<double> Presolved::restrict_rows(std::span<const double> y) const {
    std::vector<double> first;
    first.reserve(first_row_.size());
    for (const std::int32_t i : first_row_) first.push_back(y[at(i)]);
    return first;
}

std::vector<double> Presolved::restrict_columns(std::span<const double> x) const {
    if (column_of_.empty()) return {x.begin(), x.end()};
    std::vector<double> sum(at(problem().dimension()), 0.0);
    for (std::size_t j = 0; j < column_of_.size(); ++j) {
        if (column_of_[j] >= 0) sum[at(column_of_[j])] += share_[j] * x[j];
    }
    if (original_.has_intercept()) sum.back() = x.back();
    return sum;
}

} // namespace spdc
