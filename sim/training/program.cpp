#include "sim/training/program.h"

#include <algorithm>

namespace lockstep {
namespace {

bool is_message(const ProgramNode& node) {
  return node.kind == ProgramNodeKind::send || node.kind == ProgramNodeKind::receive;
}

bool names_ranks(const ProgramStep& step) {
  return std::any_of(step.nodes.begin(), step.nodes.end(), is_message) ||
         std::any_of(step.dependencies.begin(), step.dependencies.end(),
                     [](const ProgramDependency& dependency) { return dependency.rank != own_rank; });
}

}  // namespace

bool Program::names_ranks() const {
  return std::any_of(programs.begin(), programs.end(), [](const RankProgram& program) {
    return std::any_of(program.steps.begin(), program.steps.end(),
                       [](const ProgramStep& step) { return lockstep::names_ranks(step); });
  });
}

}  // namespace lockstep
