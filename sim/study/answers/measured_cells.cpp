#include "sim/study/answers/measured_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "sim/base/error.h"
#include "sim/base/median.h"
#include "sim/report/prediction.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Pointer = ordered_json::json_pointer;

constexpr std::array measured_sections{"cluster", "model", "training", "communication", "input"};
// Of a machine: what it is called, who says so, what it costs, and what was fitted to it.
constexpr std::array told_of_machine{"name", "source", "calibration", "price"};
constexpr std::size_t most_differences_told = 3;
constexpr int deepest_told = 3;  // "/cluster/machine/gpu"

Pointer pointer_of(const std::string& dotted) {
  std::string text = "/" + dotted;
  std::replace(text.begin(), text.end(), '.', '/');
  return Pointer(text);
}

std::string beginning_of(const std::string& pointer) {
  std::size_t end = 0;
  for (int depth = 0; depth < deepest_told && end != pointer.npos; ++depth) end = pointer.find('/', end + 1);
  return pointer.substr(0, end);
}

// What a measurement is of.
ordered_json measured_part(const ordered_json& resolved) {
  ordered_json part = ordered_json::object();
  for (const char* section : measured_sections)
    if (resolved.contains(section))
      part[section] = resolved[section];
  const Pointer machine("/cluster/machine");
  if (part.contains(machine) && part[machine].is_object())
    for (const char* key : told_of_machine) part[machine].erase(key);
  return part;
}

// The cells of a sweep as the cases of a file see them.
class SweptCells {
 public:
  SweptCells(const LoadRequest& base, const SweepGrid& grid) : variants_(base), grid_(grid) {
    for (const SweepAxis& axis : grid.axes()) {
      written_.emplace_back();
      for (const ordered_json& value : axis.values) written_.back().push_back(written(axis.path, value));
    }
  }

  std::optional<std::size_t> find(const ordered_json& part) const {
    const std::optional<std::size_t> cell = cell_at_values_of(part);
    return cell && part_of(*cell) == part ? cell : std::nullopt;
  }

  // Where it differs from the sweep, the axes apart; of what lies deep inside only in which part.
  std::vector<std::string> differences(const ordered_json& part) const {
    std::vector<std::string> places;
    for (const auto& change : ordered_json::diff(part_of(0), part)) {
      const std::string place = change.at("path").get<std::string>();
      const std::string told = beginning_of(place);
      if (!is_of_axis(place) && std::find(places.begin(), places.end(), told) == places.end())
        places.push_back(told);
    }
    return places;
  }

 private:
  // Empty where the cell cannot be loaded: nobody has measured that.
  ordered_json load(const Overrides& changes) const try {
    return measured_part(variants_.load({.changes = changes}).resolved);
  } catch (const ConfigError&) {
    return {};
  }

  // A value of an axis as a scenario that is written out has it: "1000 ns" is "1 us".
  ordered_json written(const std::string& path, const ordered_json& value) const {
    const ordered_json part = load({{path, value.dump()}});
    const Pointer place = pointer_of(path);
    return part.contains(place) ? part[place] : value;
  }

  ordered_json part_of(std::size_t cell) const {
    Overrides changes;
    const std::vector<ordered_json> values = grid_.values_at(cell);
    for (std::size_t axis = 0; axis < values.size(); ++axis)
      changes.emplace_back(grid_.axes()[axis].path, values[axis].dump());
    return load(changes);
  }

  bool has_value(const ordered_json& part, std::size_t axis, std::size_t value) const {
    const Pointer place = pointer_of(grid_.axes()[axis].path);
    return part.contains(place) && part[place] == written_[axis][value];
  }

  std::optional<std::size_t> cell_at_values_of(const ordered_json& part) const {
    return grid_.pairing() == Pairing::zip ? zipped_cell(part) : cell_of_product(part);
  }

  std::optional<std::size_t> zipped_cell(const ordered_json& part) const {
    for (std::size_t cell = 0; cell < grid_.cells(); ++cell) {
      bool is_it = true;
      for (std::size_t axis = 0; axis < written_.size(); ++axis) is_it &= has_value(part, axis, cell);
      if (is_it)
        return cell;
    }
    return std::nullopt;
  }

  std::optional<std::size_t> cell_of_product(const ordered_json& part) const {
    std::size_t cell = 0;
    for (std::size_t axis = 0; axis < written_.size(); ++axis) {
      std::size_t value = 0;
      while (value < written_[axis].size() && !has_value(part, axis, value)) ++value;
      if (value == written_[axis].size())
        return std::nullopt;
      cell = cell * written_[axis].size() + value;
    }
    return cell;
  }

  bool is_of_axis(const std::string& place) const {
    return std::any_of(grid_.axes().begin(), grid_.axes().end(), [&](const SweepAxis& axis) {
      return place.starts_with(pointer_of(axis.path).to_string());
    });
  }

  ScenarioVariants variants_;
  const SweepGrid& grid_;
  std::vector<std::vector<ordered_json>> written_;  // by axis and value
};

[[noreturn]] void refuse_cases(const std::string& file, const std::vector<MeasuredCase>& cases,
                               const SweptCells& cells) {
  const MeasuredCase* nearest = nullptr;
  std::vector<std::string> least;
  for (const MeasuredCase& entry : cases) {
    std::vector<std::string> places = cells.differences(measured_part(entry.resolved));
    if (nearest == nullptr || places.size() < least.size()) {
      nearest = &entry;
      least = std::move(places);
    }
  }
  std::string told = least.empty() ? "what --vary varies" : "";
  for (std::size_t i = 0; i < std::min(least.size(), most_differences_told); ++i)
    told += fmt::format("{}{}", i == 0 ? "" : ", ", least[i]);
  if (least.size() > most_differences_told)
    told += fmt::format(" and {} more", least.size() - most_differences_told);
  throw ConfigError(fmt::format(
      "--measured: {}: none of its {} cases of an iteration is of a cell of this sweep; the nearest, \"{}\", "
      "differs in {}; expected cases of the scenario that is swept",
      file, cases.size(), nearest->name, told));
}

}  // namespace

const MeasuredPoint* MeasuredCells::of_cell(std::size_t cell) const {
  const auto found = std::find_if(points.begin(), points.end(),
                                  [&](const MeasuredPoint& point) { return point.cell == cell; });
  return found == points.end() ? nullptr : &*found;
}

MeasuredCells place_run(const std::string& run, std::vector<MeasuredPoint> caps, const SweepGrid& grid) {
  std::string varied;
  for (const SweepAxis& axis : grid.axes()) varied += (varied.empty() ? "" : ", ") + axis.path;
  if (varied != measured_axis)
    throw ConfigError(
        fmt::format("--measured: a run of the harness is over {}; expected that as the only --vary, found {}",
                    measured_axis, varied));
  const std::vector<ordered_json>& values = grid.axes()[0].values;
  for (MeasuredPoint& point : caps)
    for (std::size_t cell = 0; cell < values.size() && !point.cell; ++cell)
      if (values[cell].is_number() && values[cell].get<double>() == point.settings[0].get<double>())
        point.cell = cell;
  std::stable_sort(caps.begin(), caps.end(), [](const MeasuredPoint& one, const MeasuredPoint& other) {
    return one.settings[0].get<double>() < other.settings[0].get<double>();
  });
  return {.kind = "run", .name = run, .points = std::move(caps)};
}

MeasuredCells place_cases(const std::string& file, const std::vector<MeasuredCase>& cases,
                          const LoadRequest& base, const SweepGrid& grid) {
  const SweptCells cells(base, grid);
  MeasuredCells placed{.kind = "measurements",
                       .name = std::filesystem::path(file).filename().string(),  // no answer holds a path
                       .points = {}};
  std::map<std::size_t, std::vector<double>> times;
  for (const MeasuredCase& entry : cases) {
    if (const auto cell = cells.find(measured_part(entry.resolved)))
      times[*cell].push_back(entry.iteration_s);
    else
      placed.left_out.push_back(entry.name);
  }
  if (times.empty())
    refuse_cases(file, cases, cells);
  for (auto& [cell, found] : times)
    placed.points.push_back(
        {.settings = grid.values_at(cell), .cell = cell, .median_s = median(std::move(found))});
  return placed;
}

}  // namespace lockstep
