// SPDX-License-Identifier: Apache-2.0
// Writes the inputs that fuzzing starts from: make_corpus recording|ring FOLDER.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "mutate.hpp"

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s recording|ring FOLDER\n", argv[0]);
        return 2;
    }
    std::error_code failed;
    std::filesystem::create_directories(argv[2], failed);
    int n = 0;
    for (const auto& seed :
         std::strcmp(argv[1], "ring") == 0 ? plumb::fuzz::ring_seeds() : plumb::fuzz::recording_seeds()) {
        std::ofstream file(std::string(argv[2]) + "/seed-" + std::to_string(n++), std::ios::binary);
        file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
        if (!file) {
            std::fprintf(stderr, "%s could not be written: free some space\n", argv[2]);
            return 1;
        }
    }
    return 0;
}
