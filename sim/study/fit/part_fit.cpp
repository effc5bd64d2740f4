#include "sim/study/fit/part_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/study/bench/collective_table.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Before any machine is known, machines with one part lie so far apart (of the logarithm): so many machines' worth of
// evidence.
constexpr double usual_own_spread = 0.25;
constexpr double usual_own_weight = 3;
constexpr double least_own_spread = 0.03;
// Of Student's t: most machines are near their parts, and a few, whose host is the limit, far.
constexpr double freedom = 3;
// Parts of one kind lie so far from their own middle, and from what stands in for them, of what is usually known of it.
constexpr double share_of_spread = 0.5;
// And generations of one network, in what a step over them costs, so far from what they have in common.
constexpr double share_of_generation = 0.1;
// Keeps what no point tells solvable.
constexpr double tiny_information = 1e-9;

constexpr std::size_t to_size(Index index) {
  return static_cast<std::size_t>(index);
}

// What two parts of one kind have in common beside their kind's middle, of the square of what is usually known of it.
double own_share(const CommunicationConstant& constant, const std::string& part, const std::string& other) {
  const double own = share_of_spread * share_of_spread;
  if (constant.told_by != AlikeParts::generations)
    return part == other ? own : 0;
  const bool is_one_network = without_generation(part) == without_generation(other);
  return (is_one_network ? own : 0) + (part == other ? share_of_generation * share_of_generation : 0);
}

MatrixXd sub_matrix(const MatrixXd& all, const std::vector<Index>& places) {
  return all(places, places);
}

std::string source_of(const std::set<std::string>& machines) {
  std::string text = "one fit to all machines; of these with it:";
  for (const std::string& machine : machines) text += (text.ends_with(':') ? " " : ", ") + machine;
  return text;
}

}  // namespace

PartFit::PartFit(std::span<const MeasuredTable> tables, const ProfileStore& store) {
  for (auto& [profile, of_profile] : tables_by_profile(tables)) {
    const MeasuredTable& first = of_profile.front();
    const ClusterSpec cluster = load_collective_setting({.machine = first.machine}, store).cluster;
    const PartNames names = parts_of(cluster.machine, cluster.gpu.compute_capability, first.network);
    PartMember member{.profile = profile,
                      .machine = first.machine,
                      .parts = {names[0].front(), names[1].front(), names[2].front()},
                      .tables = of_profile,
                      .set = TableSet(of_profile, store),
                      .places = {}};
    for (const std::vector<std::string>& of_part : names) stand_ins_[of_part.front()] = of_part;
    for (const CommunicationConstant* constant : member.set.constants())
      member.places.push_back(place_of(member.parts[static_cast<std::size_t>(constant->part)], *constant));
    members_.push_back(std::move(member));
  }
}

Index PartFit::place_of(const std::string& part, const CommunicationConstant& constant) {
  const auto found = std::find_if(constants_.begin(), constants_.end(), [&](const Constant& known) {
    return known.part == part && known.constant == &constant;
  });
  const Index place = found - constants_.begin();
  if (found == constants_.end()) {
    constants_.push_back({part, &constant});
    own_spread_[kind_of(constants_.back())] = usual_own_spread;
  }
  return place;
}

void PartFit::solve(int rounds, const std::function<void(int)>& tell) {
  for (int round = 1; round <= rounds; ++round) {
    if (tell)
      tell(round);
    fit_members(round == 1);
    estimate_spread();
  }
}

// Of the machine's own factors, by constant: Student's t as a Gaussian whose width follows the machine's distance.
VectorXd PartFit::own_precision(const PartMember& member) const {
  VectorXd precision(static_cast<Index>(member.places.size()));
  for (Index i = 0; i < precision.size(); ++i) {
    const double spread = own_spread_.at(kind_of(member, i));
    precision[i] = (member.weights.size() == 0 ? 1 : member.weights[i]) / (spread * spread);
  }
  return precision;
}

PartFit::Kind PartFit::kind_of(const Constant& constant) {
  switch (constant.constant->told_by) {
    case AlikeParts::itself:
      return {constant.constant, constant.part};
    case AlikeParts::carried_alike:
      return {constant.constant, is_carried_by_host(constant.part) ? "hosts" : "NICs"};
    default:
      return {constant.constant, ""};
  }
}

PartFit::Kind PartFit::kind_of(const PartMember& member, Index i) const {
  const Index place = member.places[static_cast<std::size_t>(i)];
  return kind_of(constants_[static_cast<std::size_t>(place)]);
}

// The parts of all machines but those of this name.
std::set<std::string> PartFit::parts_without(const std::string& machine) const {
  std::set<std::string> known;
  for (const PartMember& member : members_)
    if (member.machine != machine && member.information.size() > 0)
      known.insert(member.parts.begin(), member.parts.end());
  return known;
}

// Where the same constant of what stands in for its part is: the nearest of the `known`. Nothing for one that is known.
std::optional<Index> PartFit::place_of_stand_in(const Constant& constant,
                                                const std::set<std::string>& known) const {
  if (known.contains(constant.part))
    return std::nullopt;
  for (const std::string& name : stand_ins_.at(constant.part)) {
    const auto found = std::find_if(constants_.begin(), constants_.end(), [&](const Constant& other) {
      return other.part == name && other.constant == constant.constant;
    });
    if (known.contains(name) && found != constants_.end())
      return found - constants_.begin();
  }
  return std::nullopt;
}

// Parts of one kind are alike: what all GPUs have says something of the next. Each constant has a middle of its own, as
// far from the usual value as that is uncertain; each part lies about that middle, and one that no machine is known to have
// about what stands in for it.
MatrixXd PartFit::usual_precision(const std::set<std::string>& known) const {
  const auto part_at = [this](Index place) -> const std::string& { return constants_[to_size(place)].part; };
  std::map<Kind, std::vector<Index>> alike;
  for (std::size_t i = 0; i < constants_.size(); ++i)
    alike[kind_of(constants_[i])].push_back(static_cast<Index>(i));
  MatrixXd precision =
      MatrixXd::Zero(static_cast<Index>(constants_.size()), static_cast<Index>(constants_.size()));
  for (const auto& [kind, places] : alike) {
    const auto count = static_cast<Index>(places.size());
    const double square = kind.constant->spread * kind.constant->spread;
    MatrixXd covariance = MatrixXd::Constant(count, count, square);
    for (Index i = 0; i < count; ++i)
      for (Index j = 0; j < count; ++j)
        covariance(i, j) +=
            square * own_share(*kind.constant, part_at(places[to_size(i)]), part_at(places[to_size(j)]));
    precision(places, places) = MatrixXd(covariance.inverse());
  }
  for (std::size_t i = 0; i < constants_.size(); ++i)
    if (const auto nearest = place_of_stand_in(constants_[i], known)) {
      const double apart = share_of_spread * constants_[i].constant->spread;
      const auto at = static_cast<Index>(i);
      precision(at, at) += 1 / (apart * apart);
      precision(*nearest, *nearest) += 1 / (apart * apart);
      precision(at, *nearest) -= 1 / (apart * apart);
      precision(*nearest, at) -= 1 / (apart * apart);
    }
  return precision;
}

// Each machine's message: its points, through a factor of its own of unknown size, to the parts.
PartFit::Gaussian PartFit::posterior_without(const std::string& machine) const {
  const auto count = static_cast<Index>(constants_.size());
  MatrixXd precision = usual_precision(parts_without(machine));
  VectorXd pull = VectorXd::Zero(count);  // about the usual values, whose logarithms are zero
  for (const PartMember& member : members_) {
    if (member.machine == machine || member.information.size() == 0)
      continue;
    const VectorXd own = own_precision(member);
    MatrixXd both = member.information;
    both.diagonal() += own;
    const Eigen::LDLT<MatrixXd> solver(both);
    const MatrixXd passed = own.asDiagonal() * solver.solve(MatrixXd(own.asDiagonal()));
    precision(member.places, member.places) += MatrixXd(own.asDiagonal()) - passed;
    pull(member.places) += own.asDiagonal() * solver.solve(member.evidence);
  }
  Gaussian parts;
  parts.covariance = precision.ldlt().solve(MatrixXd::Identity(count, count));
  parts.mean = parts.covariance * pull;
  return parts;
}

ConstantsPrior PartFit::prior_of(const PartMember& member, const Gaussian& parts) const {
  MatrixXd covariance = sub_matrix(parts.covariance, member.places);
  covariance.diagonal() += own_precision(member).cwiseInverse();
  const Eigen::LLT<MatrixXd> cholesky(covariance);
  const auto count = static_cast<Index>(member.places.size());
  return {.mean = parts.mean(member.places),
          .root = cholesky.matrixL().solve(MatrixXd::Identity(count, count))};
}

ConstantsPrior PartFit::prior_without(const std::string& machine, const PartMember& member) const {
  return prior_of(member, posterior_without(machine));
}

void PartFit::fit_members(bool is_first) {
  std::vector<ConstantsPrior> priors;
  for (const PartMember& member : members_)
    priors.push_back(is_first ? usual_prior(member.set.constants()) : prior_without(member.machine, member));
  run_in_parallel(0, members_.size(), [&](std::size_t i) {
    PartMember& member = members_[i];
    const ConstantsPrior& prior = priors[i];
    member.fit = member.set.fit(prior, is_first ? nullptr : &member.fit);
    member.information = member.set.information(member.fit);
    member.information.diagonal().array() += tiny_information;
    // At the fit the points pull as much as the prior, the other way.
    const VectorXd away = member.fit.logarithms - prior.mean;
    member.evidence =
        member.information * member.fit.logarithms + prior.root.transpose() * (prior.root * away);
  });
}

// Of a machine about its parts: the expected squares of the logarithms of its factors.
VectorXd PartFit::squared_factors(const PartMember& member, const Gaussian& parts) const {
  const VectorXd own = own_precision(member);
  MatrixXd both = member.information;
  both.diagonal() += own;
  const MatrixXd covariance = both.ldlt().solve(MatrixXd::Identity(both.rows(), both.cols()));
  const VectorXd about = parts.mean(member.places);
  const VectorXd away = covariance * (member.evidence + own.cwiseProduct(about)) - about;
  return away.cwiseAbs2() + covariance.diagonal();
}

// Expectation and maximisation for Student's t: a machine far from its parts (its host is the limit) weighs less.
void PartFit::estimate_spread() {
  const Gaussian parts = posterior_without("");
  std::map<Kind, std::pair<double, double>> squares;  // sum, count
  for (PartMember& member : members_) {
    const VectorXd factors = squared_factors(member, parts);
    member.weights.resize(factors.size());
    for (Index i = 0; i < factors.size(); ++i) {
      const Kind kind = kind_of(member, i);
      const double spread = own_spread_.at(kind);
      member.weights[i] = (freedom + 1) / (freedom + factors[i] / (spread * spread));
      auto& [sum, count] = squares[kind];
      sum += member.weights[i] * factors[i];
      count += 1;
    }
  }
  for (auto& [kind, spread] : own_spread_) {
    const auto& [sum, count] = squares[kind];
    const double square =
        (sum + usual_own_weight * usual_own_spread * usual_own_spread) / (count + usual_own_weight);
    spread = std::max(std::sqrt(square), least_own_spread);
  }
}

std::map<std::string, PartProfile> PartFit::parts() const {
  const Gaussian all = posterior_without("");
  std::map<std::string, PartProfile> result;
  for (std::size_t i = 0; i < constants_.size(); ++i) {
    const auto& [part, constant] = constants_[i];
    const auto at = static_cast<Index>(i);
    const double own = own_spread_.at(kind_of(constants_[i]));
    result[part].part = constant->part;
    result[part].constants[std::string(constant->key)] = {
        .value = constant->usual * std::exp(all.mean[at]),
        .spread = std::sqrt(all.covariance(at, at) + own * own)};
  }
  for (auto& [name, part] : result) {
    std::set<std::string> machines;
    for (const PartMember& member : members_)
      if (std::find(member.parts.begin(), member.parts.end(), name) != member.parts.end()) {
        machines.insert(member.machine);
        part.tables += static_cast<std::int64_t>(member.tables.size());
      }
    part.name = name;
    part.machines = static_cast<std::int64_t>(machines.size());
    part.source = source_of(machines);
  }
  return result;
}

}  // namespace lockstep
