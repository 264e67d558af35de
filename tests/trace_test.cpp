#include "spdc/trace.h"

#include "spdc/options.h"
#include "spdc/result.h"
#include "support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace spdc {
namespace {

using test::error_of;
using test::read_file;
using test::TempDir;

const Trace points{{0, 0, 0, 0, 1.5, -infinity, infinity, infinity, 0},
                   {1, 2.5, 0.1, 0.05, 1, 0.5, 0.5, 0.5, 7, 12.5, "spdc_fast"}};

TEST(Trace, CsvHasAHeaderAndARowPerPoint) {
    const TempDir folder;
    write_trace(points, folder.file("t.csv"));
    EXPECT_EQ(read_file(folder.file("t.csv")),
              "output,passes,seconds,seconds_solver,primal,dual,gap,relative_gap,nonzeros,omega,solver\n"
              "0,0,0,0,1.5,-inf,inf,inf,0,nan,\n"
              "1,2.5,0.1,0.05,1,0.5,0.5,0.5,7,12.5,spdc_fast\n");
}

TEST(Trace, JsonLinesAreJson) {
    const TempDir folder;
    write_trace(points, folder.file("t.jsonl"));
    std::istringstream lines(read_file(folder.file("t.jsonl")));
    std::vector<nlohmann::json> objects;
    for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
    ASSERT_EQ(objects.size(), 2u);
    EXPECT_TRUE(objects[0]["gap"].is_null()); // JSON has no infinity
    EXPECT_EQ(objects[1]["passes"], 2.5);
    EXPECT_EQ(objects[1]["nonzeros"], 7);
    EXPECT_TRUE(objects[0]["omega"].is_null());
    EXPECT_EQ(objects[1]["omega"], 12.5);
    EXPECT_EQ(objects[1]["solver"], "spdc_fast");
}

TEST(Trace, TheNameSaysTheFormat) {
    check_trace_name("a.csv");
    check_trace_name("a.jsonl");
    EXPECT_THAT(error_of(ErrorKind::invalid_argument, [] { check_trace_name("a.txt"); }),
                testing::HasSubstr("trace 'a.txt': expected a name that ends in .csv or .jsonl"));
}

TEST(Options, RangesAreSaidInWords) {
    const auto message = [](const Field &field, double value) {
        return error_of(ErrorKind::invalid_argument, [&] { check_range(field, value); });
    };
    EXPECT_EQ(message({"a", "", 0, infinity, Bound::open}, 0), "a = 0: must be greater than 0");
    EXPECT_EQ(message({"a", "", 0}, -1), "a = -1: must be at least 0");
    EXPECT_EQ(message({"a", "", 0, 1}, 2), "a = 2: must be between 0 and 1");
    EXPECT_EQ(message({"a", "", 0, 1, Bound::open}, 1), "a = 1: must be between 0 and 1, both excluded");
    EXPECT_EQ(message({"a", "", -infinity, 1}, 2), "a = 2: must be at most 1");
    EXPECT_EQ(message({"a", ""}, std::numeric_limits<double>::quiet_NaN()), "a = nan: must be a number");
    check_range({"a", "", 0, infinity, Bound::open}, infinity);
    check_range({"a", "", 0, 1}, 1);
}

TEST(Result, TheWorstCertificateIsTheOneThatCounts) {
    Result result;
    EXPECT_EQ(result.worst().relative_gap, infinity); // not run: vouches for nothing
    EXPECT_FALSE(result.converged());
    result.certificates.resize(3);
    result.certificates[0].relative_gap = 0.1;
    result.certificates[1].relative_gap = 0.3;
    result.certificates[2].relative_gap = 0.2;
    EXPECT_EQ(result.worst().relative_gap, 0.3);
}

} // namespace
} // namespace spdc
