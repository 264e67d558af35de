#include "owner_features.h"

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class Visit> void each_owner(const OwnerShares &shares, int thread, Visit &&visit) {
    for (int owner = shares.first(thread); owner < shares.end(thread); ++owner) visit(owner);
}

} // namespace

OwnerFeatures::Steps::Steps(const FastSteps &steps, double n)
    : FastSteps(steps), inverse_n(1 / n), inverse_scale(1 / sigma_scale) {
    power[0] = 1, g[0] = 0;
    for (int j = 0; j < m; ++j) {
        power[j + 1] = rho * power[j];
        g[j + 1] = rho * (g[j] + 1);
        ahead[j] = -tau * (rho * extrapolate - g[j + 1] / n) / power[j + 1];
    }
}

OwnerFeatures::OwnerFeatures(const OwnerRows &rows, double lambda, int patience, Team &team)
    : rows_(rows), lambda_(lambda), patience_(patience), parts_(at(rows.owners() * letters)), moves_(at(letters)) {
    make_numbers(team, zu_, at(rows.owners() * rows.width()));
}

void OwnerFeatures::clear(const OwnerShares &shares, int thread) noexcept {
    each_owner(shares, thread, [&](int owner) { std::ranges::fill(zu(owner), ZU{}); });
}

/// Rarely: z becomes x.
void OwnerFeatures::rebase(const OwnerShares &shares, int thread, const Walk &walk) noexcept {
    each_owner(shares, thread, [&](int owner) {
        for (ZU &pair : zu(owner)) walk.rebase(pair);
    });
}

/// A letter as soon as its seven rows are done.
void OwnerFeatures::send_parts(const OwnerShares &shares, int thread, const Walk &walk, const Batch &batch) noexcept {
    const int stretch = rows_at_a_time(shares, thread);
    for (int begin = 0; begin < batch.count; begin += stretch) {
        const int end = std::min(begin + stretch, batch.count);
        for (const auto &sender : shares.senders(thread)) {
            double parts[letters][Letter::size] = {}; // the last letter may not be full
            for (int owner = sender.owner; owner < sender.owner + sender.owners; ++owner) {
                add_parts(owner, walk, batch, begin, end, parts);
            }
            for (int letter = begin / Letter::size; letter * Letter::size < end; ++letter) {
                parts_[at(sender.owner * letters + letter)].send(parts[letter], walk.date);
            }
        }
    }
}

/// One owner's, of rows [begin, end).
void OwnerFeatures::add_parts(int owner, const Walk &walk, const Batch &batch, int begin, int end,
                              double (&parts)[letters][Letter::size]) noexcept {
    const bool is_all = end - begin > Letter::size; // then in the order of memory
    OwnerRows::Row in_memory[m];
    for (int k = 0; is_all && k < end; ++k) in_memory[k] = batch.rows[batch.by_place[k]];
    ZU sums[m];
    rows_.dots(owner, {is_all ? in_memory : batch.rows + begin, at(end - begin)}, batch.letter(end), zu(owner).data(),
               sums);
    for (int k = begin; k < end; ++k) {
        const int j = is_all ? batch.by_place[k] : k;
        const ZU sum = sums[k - begin];
        const double A = walk.alpha * steps_.power[j], B = steps_.power[j] * walk.beta - steps_.tau * steps_.g[j];
        parts[j / Letter::size][j % Letter::size] += A * sum[0] + B * sum[1];
    }
}

/// What all owners sent. All letters are looked at in each turn, none waits for the one before: that they come from other cores takes the
/// time of one. Sums are of pairs of owners first, whether one thread has both or two have.
bool OwnerFeatures::sum_parts(const OwnerShares &shares, const Walk &walk, int letter,
                              double (&sums)[Letter::size]) noexcept {
    const auto from = [&](const OwnerShares::Sender &sender) -> const Letter & {
        return parts_[at(sender.owner * letters + letter)];
    };
    const auto senders = shares.senders();
    const bool waited_long = await(patience_, [&] {
        unsigned late = 0;
        for (const auto &sender : senders) late |= from(sender).date() ^ walk.date;
        return late == 0;
    });
    for (std::size_t s = 0; s < senders.size(); ++s) {
        const double *const parts = from(senders[s]).numbers();
        if (senders[s].is_half) {
            const double *const others = from(senders[++s]).numbers();
            for (int k = 0; k < Letter::size; ++k) sums[k] += parts[k] + others[k];
        } else {
            for (int k = 0; k < Letter::size; ++k) sums[k] += parts[k];
        }
    }
    return waited_long;
}

/// The moves of seven rows as soon as their letter is there.
void OwnerFeatures::follow(const OwnerShares &shares, int thread, const Walk &walk, const Batch &batch) noexcept {
    if (shares.first(thread) == shares.end(thread)) return;
    const int stretch = rows_at_a_time(shares, thread);
    for (int begin = 0; begin < batch.count; begin += stretch) {
        OwnerRows::Row rows[m];
        ZU pairs[m];
        std::size_t moved = 0;
        for (int j = begin; j < std::min(begin + stretch, batch.count); ++j) {
            const Letter &letter = moves_[at(j / Letter::size)];
            if (j % Letter::size == 0) await(patience_, [&] { return letter.date() == walk.date; });
            const double move = letter.numbers()[j % Letter::size];
            rows[moved] = batch.rows[j];
            pairs[moved] = pair_of(walk, j, move);
            moved += move != 0 ? 1 : 0; // no branch: nobody knows which
        }
        each_owner(shares, thread, [&](int owner) { rows_.add(owner, {rows, moved}, pairs, zu(owner).data()); });
    }
}

double OwnerFeatures::distance(int owner, const Walk &walk) noexcept {
    constexpr std::size_t line = 4; // of features that few rows have, one line in four tells enough
    const std::span<const ZU> pairs = zu(owner);
    const std::size_t first = std::min<std::size_t>(pairs.size(), 4096);
    double sum = 0, rest = 0;
    for (const ZU &pair : pairs.first(first)) sum += squared_distance(walk, pair);
    for (std::size_t k = first; k < pairs.size(); k += 4 * line) {
        for (const ZU &pair : pairs.subspan(k, line)) rest += squared_distance(walk, pair);
    }
    return sum + 4 * rest;
}

} // namespace spdc
