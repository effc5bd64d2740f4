#pragma once

// Changes of documents and of bytes, each drawn by a number: the same number gives the same change.
//
// Problem:   letters changed at random leave a file that is no JSON, and what comes after its parser is never reached.
// Idea:      a document is changed value by value, by what each is: numbers and quantities by powers, names for other
//            registered names; anything may go, stand twice, change places, or come from another document.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::fuzz {

// What changes take from elsewhere.
struct Material {
  std::vector<nlohmann::ordered_json> documents;
  std::vector<std::string> names;
};

// The documents, and every name of a profile or a registry.
Material material_of(std::vector<nlohmann::ordered_json> documents);

// A few changes of it.
nlohmann::ordered_json mutated(nlohmann::ordered_json document, const Material& material, std::uint64_t draw);

// A few changes of letters: another, fewer, more, and pieces that move.
std::string mutated(std::string bytes, std::uint64_t draw);

}  // namespace lockstep::fuzz
