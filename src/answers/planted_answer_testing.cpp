// SPDX-License-Identifier: Apache-2.0
#include "answers/planted_answer_testing.hpp"

#include <gtest/gtest.h>

#include "answers/reading.hpp"

namespace plumb::answers {

Said said_of(const Entry& entry, planted::Tape tape, const OptionValues& values) {
    const recording::RecordedRun run = tape;
    Reading reading(run);
    const auto pending = entry.begin(reading, values);
    EXPECT_TRUE(pending.ok());
    EXPECT_TRUE(reading.read().ok());
    const auto answer = (*pending)();
    if (!answer.ok()) {
        return {{{"error", answer.error().message}}, answer.error().message};
    }
    const support::json document = support::parsed((*answer)->json());
    std::string file = document["schema"];
    file.replace(file.find('/'), 1, ".");
    EXPECT_EQ(support::schema_problems(PLUMB_TEST_SOURCE_DIR, file + ".json", {document}), "");
    return {document, (*answer)->text({false, 100})};
}

} // namespace plumb::answers
