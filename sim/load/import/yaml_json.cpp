#include "sim/load/import/yaml_json.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/json_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_nodes = 100'000;
constexpr std::size_t deepest_yaml = 64;

class YamlReader {
 public:
  explicit YamlReader(const std::string& file_name) : file_name_(file_name) {}

  ordered_json read(const YAML::Node& node, std::size_t depth = 0) {
    if (++nodes_ > most_nodes || depth > deepest_yaml)
      refuse(node.Mark(), "found more than settings need");
    if (node.IsMap())
      return read_mapping(node, depth);
    if (node.IsSequence()) {
      ordered_json list = ordered_json::array();
      for (const YAML::Node& element : node) list.push_back(read(element, depth + 1));
      return list;
    }
    return node.IsScalar() ? read_scalar(node) : ordered_json();
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& problem) const {
    throw ConfigError(mark.is_null()
                          ? fmt::format("{}: {}", file_name_, problem)
                          : fmt::format("{}:{}:{}: {}", file_name_, mark.line + 1, mark.column + 1, problem));
  }

 private:
  ordered_json read_mapping(const YAML::Node& node, std::size_t depth) {
    ordered_json object = ordered_json::object();
    for (const auto& member : node) {
      if (!member.first.IsScalar() || !is_utf8(member.first.Scalar()))
        refuse(member.first.Mark(), "expected a name");
      const std::string& key = member.first.Scalar();
      if (object.contains(key))
        refuse(member.first.Mark(), fmt::format("found {} twice", abbreviated(key)));
      object[key] = read(member.second, depth + 1);
    }
    return object;
  }

  // "!" is the tag of what stands in quotes.
  ordered_json read_scalar(const YAML::Node& node) const {
    const std::string& text = node.Scalar();
    if (!is_utf8(text))
      refuse(node.Mark(), "found a text that is not UTF-8");
    if (node.Tag() == "!")
      return text;
    if (text == "true" || text == "True" || text == "TRUE")
      return true;
    if (text == "false" || text == "False" || text == "FALSE")
      return false;
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
      return nullptr;
    return number_or_text(text);
  }

  static ordered_json number_or_text(const std::string& text) {
    const char* end = text.data() + text.size();
    std::int64_t whole = 0;
    if (const auto [rest, error] = std::from_chars(text.data(), end, whole);
        error == std::errc{} && rest == end)
      return whole;
    double number = 0;
    if (const auto [rest, error] = std::from_chars(text.data(), end, number);
        error == std::errc{} && rest == end && std::isfinite(number))
      return number;
    return text;
  }

  const std::string& file_name_;
  std::size_t nodes_ = 0;
};

}  // namespace

ordered_json parse_yaml_text(const std::string& text, const std::string& file_name) {
  YamlReader reader(file_name);
  try {
    return reader.read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    reader.refuse(error.mark, error.msg);
  }
}

}  // namespace lockstep
