#include "sim/load/reading/changed_profile.h"

#include <doctest/doctest.h>

namespace lockstep::changed_profile_test {

using nlohmann::ordered_json;

ordered_json box() {
  return ordered_json::parse(R"({"name": "box", "gpu": "a100", "gpus": 4, "price": {"usd": 1, "date": "2026"},
    "nics": [{"link": "hdr200", "gpus": [0, 1]}, {"link": "hdr200", "gpus": [2, 3]}]})");
}

ChangedDocument changed(const char* changes) {
  return lay_over(box(), ordered_json::parse(changes));
}

TEST_CASE("what is not changed stays, and what is changed is listed with what it was") {
  const ChangedDocument document = changed(R"({"gpus": 8, "price": {"usd": 2}, "color": "red"})");
  CHECK(document.value["name"] == "box");
  CHECK(document.value["price"] == ordered_json::parse(R"({"usd": 2, "date": "2026"})"));
  CHECK(text_of(document.values) == "gpus 8 (4), price.usd 2 (1), color red (not stated)");
  CHECK(changed(R"({"gpus": 4})").values.empty());
  CHECK(text_of(changed(R"({"nics": null})").values).starts_with("nics left out ("));
}

TEST_CASE("a change below a name is one of that profile, and a whole object stands in its place") {
  CHECK(changed(R"({"gpu": {"memory": "1 GB"}})").value["gpu"] ==
        ordered_json::parse(R"({"based_on": "a100", "memory": "1 GB"})"));
  CHECK(changed(R"({"gpu": {"memory": "1 GB"}})").values.empty());  // listed where that profile is read
  for (const char* whole : {R"({"name": "mine"})", R"({"kind": "torus"})", R"({"based_on": "h100"})",
                            R"({"bandwidth": "1 GB/s", "latency": "1 us"})"}) {
    const ordered_json gpu = ordered_json::parse(whole);
    CHECK(lay_over(box(), {{"gpu", gpu}}).value["gpu"] == gpu);
  }
}

TEST_CASE("a profile that is based on another name is a change of the name alone") {
  const ChangedDocument other = changed(R"({"gpu": {"based_on": "h100", "memory": "1 GB"}})");
  CHECK(other.value["gpu"] == ordered_json::parse(R"({"based_on": "h100", "memory": "1 GB"})"));
  CHECK(text_of(other.values) == "gpu h100 (a100)");
  CHECK(changed(R"({"gpu": {"based_on": "a100", "memory": "1 GB"}})").values.empty());
}

TEST_CASE("a list of alike NICs is changed as one, or element by element") {
  CHECK(changed(R"({"nics": {"count": 4}})").value["nics"] ==
        ordered_json::parse(R"({"count": 4, "link": "hdr200"})"));
  CHECK(text_of(changed(R"({"nics": {"count": 4}})").values) == "nics.count 4 (2)");
  const ChangedDocument one = changed(R"({"nics": {"1": {"link": "edr100"}}})");
  CHECK(one.value["nics"][0]["link"] == "hdr200");
  CHECK(one.value["nics"][1] == ordered_json::parse(R"({"link": "edr100", "gpus": [2, 3]})"));
  CHECK(text_of(one.values) == "nics.1.link edr100 (hdr200)");
}

TEST_CASE("what a list does not have is a problem with its place") {
  CHECK(changed(R"({"nics": {"2": {"link": "edr100"}}})").problems ==
        std::vector<std::string>{"/nics/2: found no such element, expected an index below 2"});
  ordered_json unlike = box();
  unlike["nics"][1]["link"] = "edr100";
  const ordered_json count{{"nics", {{"count", 4}}}};
  CHECK(lay_over(unlike, count).problems ==
        std::vector<std::string>{
            "/nics: found a list whose elements differ, expected the index of one of them, below 2"});
  const ordered_json anew = ordered_json::parse(R"({"nics": {"count": 4, "link": "edr100"}})");
  CHECK(lay_over(unlike, anew).problems.empty());
  CHECK(lay_over(unlike, anew).value["nics"] == anew["nics"]);
}

}  // namespace lockstep::changed_profile_test
