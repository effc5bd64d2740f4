#pragma once

// Which scenarios a sweep runs: the Cartesian product of some values for some paths, or their rows side by side.
//
// Problem:   "bucket caps from 1 to 200, doubling, on 1, 2 and 4 nodes" must be one short argument each.
// Idea:      an axis is a dotted path and its values; a cell is a number whose digits, in the mixed radix of
//            the axes, choose the values. The last axis varies fastest, as nested loops would. Zipped axes
//            advance together: the number of the cell chooses from each.
// Invariant: the order of cells depends on the arguments alone; the values of a range are rounded to 12
//            digits, so that 0.1 three times over is 0.3.
// Cost:      the values of the axes are stored, the product never is.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep {

struct SweepAxis {
  std::string path;  // dotted, as --set takes it
  std::vector<nlohmann::ordered_json> values;
};

// "PATH=V1,V2,...": each value is read as JSON, else taken as a string. Each may also be a range, both ends
// included when hit: FROM:TO:xK (geometric) or FROM:TO:+K (arithmetic), numbers or quantities of one unit
// ("1 us:8 us:x2"). Throws ConfigError.
SweepAxis parse_axis(const std::string& text);

enum class Pairing : std::uint8_t { product, zip };

class SweepGrid {
 public:
  // Throws ConfigError when a path is there twice, when zipped axes differ in length, and when no integer holds
  // the number of cells.
  explicit SweepGrid(std::vector<SweepAxis> axes, Pairing pairing = Pairing::product);
  // From the arguments of --vary; all that is wrong with them is reported together.
  static SweepGrid parse(const std::vector<std::string>& arguments, Pairing pairing = Pairing::product);

  const std::vector<SweepAxis>& axes() const { return axes_; }
  Pairing pairing() const { return pairing_; }
  std::size_t cells() const { return cells_; }
  // One value for each axis.
  std::vector<nlohmann::ordered_json> values_at(std::size_t cell) const;

 private:
  void count_zipped();
  void count_product();

  std::vector<SweepAxis> axes_;
  Pairing pairing_;
  std::size_t cells_ = 1;
};

// Every count-th cell, beginning with the index-th (from 1): what one of `count` machines runs.
struct SweepShard {
  std::size_t index = 1;
  std::size_t count = 1;

  std::size_t size_in(std::size_t cells) const { return cells < index ? 0 : (cells - index) / count + 1; }
  std::size_t cell_at(std::size_t place) const { return index - 1 + place * count; }
  bool has(std::size_t cell, std::size_t cells) const {
    return cell < cells && cell >= index - 1 && (cell - (index - 1)) % count == 0;
  }
  // Of one of its cells.
  std::size_t place_of(std::size_t cell) const { return (cell - (index - 1)) / count; }
};

// "2/8". Throws ConfigError.
SweepShard parse_shard(const std::string& text);

}  // namespace lockstep
