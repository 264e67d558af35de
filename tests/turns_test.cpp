// Which solver has its turn, when the others make too little progress.
#include "turns.h"

#include <gtest/gtest.h>

namespace spdc::tests {
namespace {

TEST(Turns, EachHasOneThenTheNearestWithMorePatience) {
    const std::vector<Choice> choices{
        {SpdcFast{}, "first", 100, {150}}, {NewtonCg{}, "second", 80}, {Newton{}, "third", 600}};
    Turns turns(choices);
    EXPECT_EQ(turns.now(), 0U);
    EXPECT_EQ(turns.successor(), 80);
    EXPECT_EQ(turns.patience().passes, 150);
    EXPECT_FALSE(turns.pass_on(900));
    EXPECT_EQ(turns.now(), 1U);
    EXPECT_EQ(turns.successor(), 600);
    EXPECT_EQ(turns.patience().passes, 300); // half of what the third costs
    EXPECT_FALSE(turns.pass_on(5000));
    EXPECT_EQ(turns.now(), 2U);
    EXPECT_EQ(turns.successor(), 900); // the first was nearer than the second
    EXPECT_TRUE(turns.pass_on(2000));
    EXPECT_EQ(turns.now(), 0U);
    EXPECT_EQ(turns.successor(), 2000);
    EXPECT_EQ(turns.patience().passes, 4 * 150);
    EXPECT_TRUE(turns.pass_on(9000));
    EXPECT_EQ(turns.now(), 2U);
    EXPECT_TRUE(turns.pass_on(8000));
    EXPECT_EQ(turns.now(), 1U); // the others have become worse than it was
    EXPECT_EQ(turns.patience().passes, 4 * 100);
    EXPECT_TRUE(turns.pass_on(8500));
    EXPECT_EQ(turns.now(), 2U);
    EXPECT_EQ(turns.patience().passes, 16 * 100);
}

TEST(Turns, EndForOneThatBrokeDown) {
    const std::vector<Choice> choices{{SpdcFast{}, "first"}, {NewtonCg{}, "second"}};
    Turns turns(choices);
    EXPECT_FALSE(turns.pass_on(infinity));
    EXPECT_EQ(turns.now(), 1U);
    EXPECT_FALSE(turns.successor().has_value()); // there is no other: it goes on to the end
}

TEST(Turns, AreNotPassedOnFromTheOnlyOne) {
    const std::vector<Choice> choices{{SpdcFast{}, "only"}};
    EXPECT_FALSE(Turns(choices).successor().has_value());
    EXPECT_EQ(Turns(choices).patience().passes, 100);
}

TEST(Turns, KeepAllOfAChoicesPatience) {
    const std::vector<Choice> choices{{NewtonCg{}, "first", 100, {60, 1, true}}, {SpdcFast{}, "second", 40}};
    const Patience patience = Turns(choices).patience();
    EXPECT_EQ(patience.passes, 60);
    EXPECT_EQ(patience.times, 1);
    EXPECT_TRUE(patience.in_steps);
}

} // namespace
} // namespace spdc::tests
