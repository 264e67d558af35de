#include <spdc/spdc.h>

#include <iostream>

int main(int, char **argv) {
    const spdc::Problem problem(spdc::read_dataset(argv[1]), spdc::Logistic{}, spdc::L2{1e-3});
    const spdc::Result result = spdc::solve(problem);
    std::cout << "at most " << result.worst().gap << " above the optimum\n";
    return result.converged() ? 0 : 1;
}
