#include "move_choice.h"

#include <cmath>

#include "move_row.h"

namespace keisei {

void write_probabilities(const MoveLogits& moves, const TowerKernels& kernels, float* probabilities) {
    MoveRow row(kernels);
    for (int position = 0; position < moves.positions; ++position) {
        row.read(moves, position, 1);
        for (int i = 0; i < row.size(); ++i)
            probabilities[moves.offsets[position] + i] = float(double(row.weight(i)) / row.total());
    }
}

void choose_moves(const MoveLogits& moves, const double* chances, float temperature, const TowerKernels& kernels,
                  int32_t* columns, float* log_probabilities) {
    MoveRow row(kernels);
    for (int position = 0; position < moves.positions; ++position) {
        row.read(moves, position, temperature == 0 ? 1 : temperature);
        int chosen = 0;
        if (temperature == 0)
            while (row.exponent(chosen) < 0) ++chosen;
        else
            chosen = row.at(chances[position]);
        columns[position] = chosen;
        log_probabilities[position] = float(double(row.exponent(chosen)) - std::log(row.total()));
    }
}

}  // namespace keisei
