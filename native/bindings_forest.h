// The leaves of a forest in a Python caller's arrays.
#pragma once

#include "bindings_array.h"
#include "tree.h"

namespace keisei {

// Keeps move scores finite, whatever the priors and visits.
inline double checked_weight(const char* name, double value) {
    if (!(value >= 0 && value <= 1e6))
        raise_value_error(std::string(name) + " is " + std::to_string(value) + ", expected 0 to 1000000");
    return value;
}

// Where to write the leaves.
class LeafArrays {
public:
    LeafArrays(const Forest& forest, nb::handle planes, nb::handle offsets, nb::handle actions)
        : planes_(planes, "planes", {forest.most_rows(), PLANES, 9, 9}, true),
          offsets_(offsets, "offsets", {forest.most_rows() + 1}, true),
          actions_(actions, "actions", {Py_ssize_t(forest.most_rows()) * MAX_LEGAL_MOVES}, true) {}
    void select(Forest& forest, int visits) const {
        forest.select(visits);
        forest.write(planes_.data(), offsets_.data(), actions_.data());
    }

private:
    const Array<float> planes_;
    const Array<int32_t> offsets_, actions_;
};

// The evaluations of the leaves.
class LeafAnswers {
public:
    LeafAnswers(const Forest& forest, nb::handle priors, nb::handle values)
        : priors_(priors, "priors", {forest.actions()}, false), values_(values, "values", {forest.rows()}, false) {}
    std::optional<Error> expand(Forest& forest) const { return forest.expand(priors_.data(), values_.data()); }

private:
    const Array<float> priors_, values_;
};

}  // namespace keisei
