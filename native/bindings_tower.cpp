// The network on the CPU for Python. Works on the caller's arrays, without the GIL.
#include <algorithm>
#include <string>
#include <vector>

#include "bindings_array.h"
#include "encode.h"
#include "move_choice.h"
#include "ppo_loss.h"
#include "search_loss.h"
#include "tower.h"

namespace keisei {
namespace {

class SharedTower : public Shared<Tower> {
public:
    explicit SharedTower(std::unique_ptr<Tower> tower) : Shared(std::move(tower), "this network is") {}
};
using Use = SharedTower::Use;

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (int i = 0; const TowerKernels* kernels = usable_kernels(i); ++i) names.emplace_back(kernels->name);
    return names;
}

const TowerKernels& to_kernels(std::string_view name) {
    std::string known;
    for (int i = 0; const TowerKernels* kernels = usable_kernels(i); ++i) {
        if (name == kernels->name) return *kernels;
        known += (i ? ", " : "") + std::string(kernels->name);
    }
    raise_value_error("this machine has no kernels '" + std::string(name) + "', expected one of " + known);
}

void init_tower(SharedTower* self, int blocks, int channels, int groups, int excitation, int value_hidden,
                bool pieces, bool linear_head, std::string_view kernels, int threads) {
    TowerShape shape;
    shape.blocks = checked("blocks", blocks, 0, 1000);
    shape.channels = checked("channels", channels, 1, 4096);
    shape.groups = checked("groups", groups, 1, channels);
    if (channels % groups)
        raise_value_error("groups " + std::to_string(groups) + " must divide channels " + std::to_string(channels));
    shape.excitation = checked("excitation", excitation, 0, 4096);
    shape.value_hidden = checked("value_hidden", value_hidden, 1, 65536);
    shape.pieces = pieces;
    shape.linear_head = linear_head;
    checked("threads", threads, 1);
    const TowerKernels& chosen = to_kernels(kernels);
    std::unique_ptr<Tower> tower;
    without_gil([&] { tower = std::make_unique<Tower>(shape, chosen, threads); });
    new (self) SharedTower(std::move(tower));
}

void load(SharedTower& self, nb::handle weights, bool learning) {
    const Use tower(self);
    const Array<float> given(weights, "weights", {Py_ssize_t(tower->parameters())}, false);
    self.change([&] { tower->load(given.data(), learning); });
}

// The caller's positions; throws if a move or an offset is not what it should be.
class Positions {
public:
    Positions(const Tower& tower, nb::handle planes, nb::handle offsets, nb::handle moves)
        : planes_(planes, "planes", {ANY, PLANES, 9, 9}, false),
          offsets_(offsets, "offsets", {planes_.rows() + 1}, false),
          moves_(moves, "moves", {ANY}, false) {
        const int32_t* bounds = offsets_.data();
        if (bounds[0] != 0 || bounds[count()] != moves_.rows() || !std::is_sorted(bounds, bounds + count() + 1))
            raise_value_error("offsets: expected to rise from 0 to " + std::to_string(moves_.rows()));
        for (int i = 0; i < moves_.rows(); ++i)
            if (moves_.data()[i] < 0 || moves_.data()[i] >= tower.logits())
                raise_value_error("moves[" + std::to_string(i) + "] is " + std::to_string(moves_.data()[i]) +
                                  ", expected 0 to " + std::to_string(tower.logits() - 1));
    }
    int count() const { return planes_.rows(); }
    Py_ssize_t moves() const { return moves_.rows(); }
    TowerInput input() const { return {count(), planes_.data(), offsets_.data(), moves_.data()}; }

private:
    const Array<float> planes_;
    const Array<int32_t> offsets_, moves_;
};

void evaluate(SharedTower& self, nb::handle planes, nb::handle offsets, nb::handle moves, nb::handle logits,
              nb::handle values, nb::handle kept) {
    const Use tower(self);
    const Positions positions(*tower.operator->(), planes, offsets, moves);
    const Array<float> out_logits(logits, "logits", {positions.moves()}, true);
    const Array<float> out_values(values, "values", {positions.count()}, true);
    const Array<float> memory(kept, "kept", {Py_ssize_t(tower->memory_of(positions.count()))}, true);
    self.change([&] { tower->evaluate(positions.input(), out_logits.data(), out_values.data(), memory.data()); });
}

void gradients(SharedTower& self, nb::handle planes, nb::handle offsets, nb::handle moves, nb::handle kept,
               nb::handle d_logits, nb::handle d_values, nb::handle d_weights) {
    const Use tower(self);
    if (!tower->can_learn()) raise_value_error("the weights were not loaded for learning");
    const Positions positions(*tower.operator->(), planes, offsets, moves);
    const Array<float> memory(kept, "kept", {Py_ssize_t(tower->memory_of(positions.count()))}, false);
    const Array<float> in_logits(d_logits, "d_logits", {positions.moves()}, false);
    const Array<float> in_values(d_values, "d_values", {positions.count()}, false);
    const Array<float> out(d_weights, "d_weights", {Py_ssize_t(tower->parameters())}, true);
    self.change([&] {
        tower->gradients(positions.input(), memory.data(), in_logits.data(), in_values.data(), out.data());
    });
}

// The caller's logits; throws if a position has no moves or too many.
class Logits {
public:
    Logits(nb::handle offsets, nb::handle logits)
        : offsets_(offsets, "offsets", {ANY}, false), logits_(logits, "logits", {ANY}, false) {
        const int32_t* bounds = offsets_.data();
        bool sound = offsets_.rows() > 0 && bounds[0] == 0 && bounds[offsets_.rows() - 1] == logits_.rows();
        for (int i = 0; sound && i < count(); ++i)
            sound = bounds[i] < bounds[i + 1] && bounds[i + 1] - bounds[i] <= MAX_LEGAL_MOVES;
        if (!sound)
            raise_value_error("offsets: expected to rise from 0 to " + std::to_string(logits_.rows()) + " in steps of 1 to " +
                              std::to_string(MAX_LEGAL_MOVES));
    }
    int count() const { return offsets_.rows() - 1; }
    Py_ssize_t moves() const { return logits_.rows(); }
    MoveLogits input() const { return {count(), offsets_.data(), logits_.data()}; }

private:
    const Array<int32_t> offsets_;
    const Array<float> logits_;
};

void probabilities(nb::handle offsets, nb::handle logits, std::string_view kernels, nb::handle out) {
    const Logits moves(offsets, logits);
    const Array<float> to(out, "out", {moves.moves()}, true);
    const TowerKernels& chosen = to_kernels(kernels);
    without_gil([&] { write_probabilities(moves.input(), chosen, to.data()); });
}

void choose(nb::handle offsets, nb::handle logits, nb::handle chances, float temperature, std::string_view kernels,
            nb::handle columns, nb::handle log_probs) {
    const Logits moves(offsets, logits);
    const Array<double> given(chances, "chances", {moves.count()}, false);
    const Array<int32_t> out_columns(columns, "columns", {moves.count()}, true);
    const Array<float> out_log_probs(log_probs, "log_probs", {moves.count()}, true);
    if (!(temperature >= 0)) raise_value_error("temperature is " + std::to_string(temperature) + ", expected at least 0");
    const TowerKernels& chosen = to_kernels(kernels);
    without_gil([&] {
        choose_moves(moves.input(), given.data(), temperature, chosen, out_columns.data(), out_log_probs.data());
    });
}

nb::tuple gradients_of_loss(nb::handle offsets, nb::handle logits, nb::handle values, nb::handle columns,
                            nb::handle log_probs, nb::handle old_values, nb::handle advantages, nb::handle returns,
                            int minibatch, double clip, double value_clip, double value_coef, double entropy_coef,
                            std::string_view kernels, nb::handle d_logits, nb::handle d_values) {
    const Logits moves(offsets, logits);
    const Py_ssize_t n = moves.count();
    const Array<float> in_values(values, "values", {n}, false), in_log_probs(log_probs, "log_probs", {n}, false);
    const Array<float> in_old(old_values, "old_values", {n}, false), in_advantages(advantages, "advantages", {n}, false);
    const Array<float> in_returns(returns, "returns", {n}, false);
    const Array<int32_t> in_columns(columns, "columns", {n}, false);
    const Array<float> out_logits(d_logits, "d_logits", {moves.moves()}, true);
    const Array<float> out_values(d_values, "d_values", {n}, true);
    for (int i = 0; i < moves.count(); ++i) {
        const int width = moves.input().offsets[i + 1] - moves.input().offsets[i];
        if (in_columns.data()[i] < 0 || in_columns.data()[i] >= width)
            raise_value_error("columns[" + std::to_string(i) + "] is " + std::to_string(in_columns.data()[i]) +
                              ", expected 0 to " + std::to_string(width - 1));
    }
    const PpoSettings settings{checked("minibatch", minibatch, 1), clip, value_clip, value_coef, entropy_coef};
    const TowerKernels& chosen = to_kernels(kernels);
    PpoSums sums;
    without_gil([&] {
        sums = ppo_gradients(moves.input(), in_values.data(),
                             {in_columns.data(), in_log_probs.data(), in_old.data(), in_advantages.data(), in_returns.data()},
                             settings, chosen, out_logits.data(), out_values.data());
    });
    return nb::make_tuple(sums.policy_loss, sums.value_loss, sums.entropy, sums.approx_kl, sums.clip_fraction);
}

nb::tuple gradients_of_search_loss(nb::handle offsets, nb::handle logits, nb::handle values, nb::handle legal,
                                   nb::handle tried, nb::handle gains, nb::handle returns, nb::handle weights,
                                   int minibatch, int targets, double value_coef, double entropy_coef,
                                   std::string_view kernels, nb::handle d_logits, nb::handle d_values) {
    const Logits moves(offsets, logits);
    const Py_ssize_t n = moves.count();
    const Array<float> in_values(values, "values", {n}, false), in_returns(returns, "returns", {n}, false);
    const Array<float> in_weights(weights, "weights", {n}, false), in_gains(gains, "gains", {n, ANY}, false);
    const Array<int16_t> in_tried(tried, "tried", {n, in_gains.columns()}, false);
    const Array<int32_t> in_legal(legal, "legal", {moves.moves()}, false);
    const Array<float> out_logits(d_logits, "d_logits", {moves.moves()}, true);
    const Array<float> out_values(d_values, "d_values", {n}, true);
    const SearchLossSettings settings{checked("minibatch", minibatch, 1), checked("targets", targets, 0), value_coef,
                                      entropy_coef};
    const TowerKernels& chosen = to_kernels(kernels);
    SearchSums sums;
    without_gil([&] {
        sums = search_gradients(moves.input(), in_values.data(),
                                {in_legal.data(), in_tried.data(), in_gains.data(), in_returns.data(), in_weights.data(),
                                 int(in_gains.columns())},
                                settings, chosen, out_logits.data(), out_values.data());
    });
    if (sums.bad_row >= 0)
        raise_value_error("tried[" + std::to_string(sums.bad_row) + "] has an action that is illegal in its position");
    return nb::make_tuple(sums.policy_loss, sums.value_loss, sums.entropy, sums.divergence, sums.agreement);
}

}  // namespace

void bind_tower(nb::module_& m) {
    nb::class_<SharedTower>(m, "Tower", "The network on the CPU; use it through keisei.core.native_tower.")
        .def("__init__", &init_tower, nb::kw_only(), "blocks"_a, "channels"_a, "groups"_a, "excitation"_a,
             "value_hidden"_a, "pieces"_a, "linear_head"_a, "kernels"_a, "threads"_a)
        .def("_load", &load, "weights"_a, "learning"_a)
        .def("_evaluate", &evaluate, "planes"_a, "offsets"_a, "moves"_a, "logits"_a, "values"_a, "kept"_a.none())
        .def("_gradients", &gradients, "planes"_a, "offsets"_a, "moves"_a, "kept"_a, "d_logits"_a, "d_values"_a,
             "d_weights"_a)
        .def("_memory_of", [](SharedTower& self, int n) { return Use(self)->memory_of(checked("positions", n, 0)); })
        .def_prop_ro("parameters", [](SharedTower& self) { return Use(self)->parameters(); })
        .def_prop_ro("threads", [](SharedTower& self) { return Use(self)->threads(); })
        .def_prop_ro("kernels", [](SharedTower& self) { return std::string(Use(self)->kernels().name); });
    m.def("tower_kernels", [] {
        nb::list names;
        for (const std::string& name : kernel_names()) names.append(nb::str(name.c_str()));
        return names;
    });
    m.def("move_probabilities", &probabilities, "offsets"_a, "logits"_a, "kernels"_a, "out"_a);
    m.def("choose_moves", &choose, "offsets"_a, "logits"_a, "chances"_a, "temperature"_a, "kernels"_a, "columns"_a,
          "log_probs"_a);
    m.def("ppo_gradients", &gradients_of_loss, nb::kw_only(), "offsets"_a, "logits"_a, "values"_a, "columns"_a,
          "log_probs"_a, "old_values"_a, "advantages"_a, "returns"_a, "minibatch"_a, "clip"_a, "value_clip"_a,
          "value_coef"_a, "entropy_coef"_a, "kernels"_a, "d_logits"_a, "d_values"_a);
    m.def("search_gradients", &gradients_of_search_loss, nb::kw_only(), "offsets"_a, "logits"_a, "values"_a, "legal"_a,
          "tried"_a, "gains"_a, "returns"_a, "weights"_a, "minibatch"_a, "targets"_a, "value_coef"_a, "entropy_coef"_a,
          "kernels"_a, "d_logits"_a, "d_values"_a);
}

}  // namespace keisei
