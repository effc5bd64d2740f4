#pragma once

// What a validation found as a page, made of the document that --json prints.
//
// Invariant: fitted and held-out groups stand in tables of their own; of very many cases those with the largest
//            errors are told one by one, and how many are not.

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

// `document`: lockstep.validation/1 or lockstep.collective_validation/1.
std::string validation_page(const nlohmann::ordered_json& document);

}  // namespace lockstep
