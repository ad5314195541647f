// SPDX-License-Identifier: Apache-2.0
// Reads JSON, one document a line, and prints what is wrong with it: check_schema SOURCE_DIR SCHEMA. Nothing: all is valid under that
// file of tests/schema, and docs/reference/report_schema.md names every key.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "support/json_schema.hpp"

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: check_schema SOURCE_DIR SCHEMA\n");
        return 2;
    }
    std::vector<plumb::support::json> documents;
    for (std::string line; std::getline(std::cin, line);) {
        documents.push_back(plumb::support::parsed(line));
    }
    if (documents.empty()) {
        std::cout << "there is nothing to look at\n";
    }
    std::cout << plumb::support::schema_problems(argv[1], argv[2], documents);
    return 0;
}
