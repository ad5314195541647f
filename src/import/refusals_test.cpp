// SPDX-License-Identifier: Apache-2.0
// What an import does not read, and says so: files of no known form, and files made to harm whoever reads them.
#include <sqlite3.h>
#include <sys/stat.h>

#include "import/folder_testing.hpp"
#include "import/import.hpp"
#include "import/planted_trace_testing.hpp"
#include "import/sqlite_file.hpp"

namespace plumb::imported {
namespace {

namespace fs = std::filesystem;

Result<std::vector<ImportedRun>> try_import(const TraceFolder& folder, const std::string& name,
                                            ImportOptions options = {}) {
    options.out = folder / "run.plumb";
    return import_traces({folder / name}, options);
}

std::string refusal(const std::string& content, ImportOptions options = {}, bool packed = false) {
    const TraceFolder folder;
    packed ? save_packed(folder / "trace", content) : save(folder / "trace", content);
    options.out = folder / "run.plumb";
    const auto made = import_traces({folder / "trace"}, options);
    EXPECT_FALSE(made.ok());
    return made.error().message;
}

TEST(ImportRefusals, name_what_is_known) {
    EXPECT_NE(refusal("hello").find("Kineto"), std::string::npos);
    EXPECT_NE(refusal("").find("is empty"), std::string::npos);
    EXPECT_NE(refusal("{\"traceEvents\": []}").find("no operation of a device"), std::string::npos);
    EXPECT_NE(refusal("SQLite format 3" + std::string(2000, 'x')).find("database"), std::string::npos);
}

TEST(ImportRefusals, an_output_that_is_the_trace) {
    const TraceFolder folder;
    save(folder / "trace", as_kineto(plan({})));
    const std::string before = content_of(folder / "trace");
    ImportOptions options;
    options.out = folder / "trace";
    const auto made = import_traces({folder / "trace"}, options);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find("is a trace itself"), std::string::npos) << made.error().message;
    EXPECT_EQ(content_of(folder / "trace"), before);
}

TEST(ImportRefusals, tell_what_was_written_before) {
    const TraceFolder folder;
    save(folder / "a", as_kineto(plan({})));
    save(folder / "b", "hello");
    ImportOptions options;
    options.out = folder / "run.plumb";
    const auto made = import_traces({folder / "a", folder / "b"}, options);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find("; written before it: " + (folder / "run-0.plumb")), std::string::npos)
        << made.error().message;
}

TEST(ImportRefusals, files_beyond_the_limit) {
    ImportOptions options;
    options.max_size = 1000;
    EXPECT_NE(refusal(as_kineto(plan({})), options).find("--max-size"), std::string::npos);
}

TEST(ImportRefusals, bombs) {
    const std::string bomb = "{\"traceEvents\": [" + std::string(std::size_t{70} << 20, ' ') + "]}";
    EXPECT_NE(refusal(bomb, {}, true).find("1000 times"), std::string::npos);
}

TEST(ImportRefusals, levels_without_end) {
    std::string deep = "[{\"ph\": \"X\", \"args\": ";
    for (int i = 0; i < 100'000; ++i) {
        deep += "{\"a\": ";
    }
    EXPECT_NE(refusal(deep).find("no operation"), std::string::npos);
    EXPECT_NE(refusal(std::string(100'000, '[')).find("no operation"), std::string::npos);
    EXPECT_NE(refusal("{" + std::string(100'000, '{')).find("no operation"), std::string::npos);
}

/// One event of a kernel.
std::string kernel_at(int start, const std::string& args = {}) {
    return R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": )" + std::to_string(start) +
           R"(, "dur": 1, "args": {"stream": 7)" + args + "}}";
}

std::string many(const std::string& text, int times) {
    std::string made;
    for (int i = 0; i < times; ++i) {
        made += text;
    }
    return made;
}

/// Operations of the one recording, and what is said of the trace.
struct Kept {
    std::uint64_t operations = 0;
    std::string notes;
};
Kept kept(const std::string& content) {
    const TraceFolder folder;
    save(folder / "trace", content);
    const auto made = try_import(folder, "trace");
    EXPECT_TRUE(made.ok()) << made.error().message;
    Kept found;
    for (const ImportedRun& run : made.ok() ? *made : std::vector<ImportedRun>()) {
        found.operations += run.operations;
        for (const std::string& note : run.notes) {
            found.notes += note + "\n";
        }
    }
    return found;
}

TEST(ImportRefusals, levels_without_end_inside_one_event_cost_that_event_alone) {
    for (const int levels : {1000, 100'000}) {
        const std::string deep = kernel_at(20, ", \"a\": " + many("[", levels) + many("]", levels));
        const std::string broken = kernel_at(30, ", \"a\": " + many("{\"ph\": ", levels));
        const Kept found = kept("[" + kernel_at(10) + ",\n" + deep + ",\n" + broken + ",\n" + kernel_at(40) + "]");
        EXPECT_EQ(found.operations, 2U) << levels;
        EXPECT_NE(found.notes.find("could not be read"), std::string::npos) << found.notes;
    }
}

TEST(ImportRefusals, a_bracket_that_is_missing_costs_its_own_event_alone) {
    std::string text = "[";
    constexpr int events = 30'000; // beyond the length of an element
    for (int i = 0; i < events; ++i) {
        const std::string event = kernel_at(10 * i);
        text += (i == 0 ? "" : ",\n") + (i == 5 ? event.substr(0, event.size() - 1) : event);
    }
    const Kept found = kept(text + "]");
    EXPECT_EQ(found.operations, static_cast<std::uint64_t>(events - 1));
    EXPECT_NE(found.notes.find("1 operation: could not be read"), std::string::npos) << found.notes;
}

TEST(ImportRefusals, brackets_that_never_close_are_looked_at_a_few_times_a_block) {
    // Each quote swallows the next bracket, so that depth alone ends no look.
    const std::string unit = R"({"ph":1,"x":"}","y":[{}],)";
    const TraceFolder folder;
    save(folder / "trace", "[" + many(unit, 400'000) + kernel_at(10) + "]");
    const auto made = try_import(folder, "trace");
    EXPECT_TRUE(made.ok() || made.error().message.find("no operation") != std::string::npos);
}

TEST(ImportRefusals, databases_beyond_the_limit) {
    const TraceFolder folder;
    save_nsys(plan({}), folder / "trace");
    ImportOptions options;
    options.max_size = fs::file_size(folder / "trace") - 1;
    const auto made = try_import(folder, "trace", options);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find("--max-size"), std::string::npos);
    options.max_size += 1;
    EXPECT_TRUE(try_import(folder, "trace", options).ok());
}

TEST(ImportRefusals, packed_databases_beyond_the_limit_and_bombs_of_them) {
    const TraceFolder folder;
    save_nsys(plan({}), folder / "plain");
    const std::string content = content_of(folder / "plain");
    save_packed(folder / "trace", content);
    ImportOptions options;
    options.max_size = content.size() - 1;
    const auto beyond = try_import(folder, "trace", options);
    ASSERT_FALSE(beyond.ok());
    EXPECT_NE(beyond.error().message.find("--max-size"), std::string::npos);
    save_packed(folder / "trace", content.substr(0, 100) + std::string(std::size_t{70} << 20, 0));
    const auto bomb = try_import(folder, "trace");
    ASSERT_FALSE(bomb.ok());
    EXPECT_NE(bomb.error().message.find("1000 times"), std::string::npos);
}

TEST(ImportRefusals, a_pipe_is_no_trace_and_is_not_waited_for) {
    const TraceFolder folder;
    ASSERT_EQ(::mkfifo((folder / "trace").c_str(), 0600), 0);
    const auto made = try_import(folder, "trace");
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find("is no file"), std::string::npos);
}

// ---- databases

TEST(ImportRefusals, names_of_databases_are_no_part_of_the_uri) {
    const PlannedTrace planned = plan({});
    for (const char* name : {"a?mode=memory", "b#c", "100%41.sqlite", "d&vfs=none e", "\xc3\xbc'\";", "?", "%00"}) {
        const TraceFolder folder;
        save_nsys(planned, folder / "plain"); // here a URI would have said something else
        fs::rename(folder / "plain", folder / name);
        const auto made = try_import(folder, name);
        ASSERT_TRUE(made.ok()) << name << ": " << made.error().message;
        EXPECT_EQ(made->at(0).operations, planned.ops.size()) << name;
    }
}

TEST(ImportRefusals, a_database_is_not_touched_and_leaves_nothing_beside_it) {
    const TraceFolder folder;
    save_nsys(plan({}), folder / "trace");
    change_database(folder / "trace", {"COMMIT", "PRAGMA journal_mode = WAL", "BEGIN"});
    const std::string before = content_of(folder / "trace");
    fs::permissions(folder / "trace", fs::perms::owner_read);
    EXPECT_TRUE(try_import(folder, "trace").ok());
    EXPECT_EQ(content_of(folder / "trace"), before);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "."), fs::directory_iterator()), 2); // it and run.plumb
}

/// What is said of a database whose table of kernels is changed so.
std::string refused_database(const std::vector<std::string>& queries) {
    const TraceFolder folder;
    PlannedRun run;
    run.side_stream = true; // copies are there all the same
    save_nsys(plan(run), folder / "trace");
    EXPECT_TRUE(try_import(folder, "trace").ok());
    change_database(folder / "trace", queries);
    const auto made = try_import(folder, "trace");
    EXPECT_FALSE(made.ok());
    return made.error().message;
}

constexpr const char* in_place = "a view or virtual table in place of the table CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* out_of_the_way = "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO kernels";

TEST(ImportRefusals, a_view_in_place_of_a_table) {
    EXPECT_NE(refused_database({out_of_the_way, "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM kernels"})
                  .find(in_place),
              std::string::npos);
}

TEST(ImportRefusals, a_view_without_end_in_place_of_a_table) {
    const std::string endless =
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL "
        "SELECT start + 1 FROM n) SELECT start, start AS end FROM n";
    EXPECT_NE(refused_database({out_of_the_way, endless}).find(in_place), std::string::npos);
}

TEST(ImportRefusals, a_virtual_table_in_place_of_a_table) {
    const std::string made = "'CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING rtree(start, end, deviceId)'";
    const std::string schema = "PRAGMA writable_schema = ON";
    EXPECT_NE(refused_database({out_of_the_way, schema,
                                "INSERT INTO sqlite_master VALUES ('table', 'CUPTI_ACTIVITY_KIND_KERNEL', "
                                "'CUPTI_ACTIVITY_KIND_KERNEL', 0, " +
                                    made + ")"})
                  .find(in_place),
              std::string::npos);
    // With the page of a table, as no SQLite would write it.
    EXPECT_NE(refused_database(
                  {schema, "UPDATE sqlite_master SET sql = " + made + " WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"})
                  .find(in_place),
              std::string::npos);
}

TEST(ImportRefusals, a_database_that_takes_too_long) {
    const TraceFolder folder;
    PlannedRun run;
    run.steps = 300; // more than SQLite does between two looks at the clock
    save_nsys(plan(run), folder / "trace");
    Result<SqliteFile> file = SqliteFile::open(folder / "trace", {}, 0);
    ASSERT_TRUE(file.ok()) << file.error().message;
    std::size_t rows = 0;
    file->each("CUPTI_ACTIVITY_KIND_KERNEL", {"start", "end", "streamId", "demangledName", "gridX", "gridY", "gridZ"},
               [&rows](const SqliteFile::Row&) { ++rows; });
    EXPECT_LT(rows, plan(run).ops.size());
    ASSERT_FALSE(file->status().ok());
    EXPECT_NE(file->status().error().message.find("takes longer"), std::string::npos);
}

/// A number of SQLite's, of two bytes.
void put_number(std::string& page, std::size_t at, std::size_t value) {
    page[at] = static_cast<char>(value >> 8);
    page[at + 1] = static_cast<char>(value & 255);
}

TEST(ImportRefusals, pages_that_lead_to_each_other_are_read_as_far_as_the_file_could_hold) {
    const TraceFolder folder;
    PlannedRun run;
    run.steps = 300;
    save_nsys(plan(run), folder / "trace");
    std::size_t root = 0;
    {
        Result<SqliteFile> file = SqliteFile::open(folder / "trace");
        ASSERT_TRUE(file.ok());
        file->each("sqlite_master", {}, [](const SqliteFile::Row&) {});
        sqlite3* database = nullptr;
        ASSERT_EQ(::sqlite3_open((folder / "trace").c_str(), &database), SQLITE_OK);
        ::sqlite3_exec(
            database, "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'",
            [](void* to, int, char** values, char**) {
                *static_cast<std::size_t*>(to) = std::strtoull(values[0], nullptr, 10);
                return 0;
            },
            &root, nullptr);
        ::sqlite3_close(database);
    }
    std::string content = content_of(folder / "trace");
    constexpr std::size_t page_size = 4096;
    // Every child of the root is the first one, a hundred times.
    std::string page = content.substr((root - 1) * page_size, page_size);
    ASSERT_EQ(page[0], 5); // it leads to others
    const std::size_t first = static_cast<unsigned char>(page[12]) << 8 | static_cast<unsigned char>(page[13]);
    const std::string child = page.substr(first, 4);
    constexpr std::size_t cells = 400;
    put_number(page, 3, cells);
    put_number(page, 5, page_size - cells * 5);
    page.replace(8, 4, child);
    for (std::size_t i = 0; i < cells; ++i) {
        const std::size_t at = page_size - (i + 1) * 5;
        put_number(page, 12 + 2 * i, at);
        page.replace(at, 4, child);
        page[at + 4] = static_cast<char>(i & 127);
    }
    content.replace((root - 1) * page_size, page_size, page);
    save(folder / "trace", content);
    const auto made = try_import(folder, "trace");
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::string notes;
    for (const std::string& note : made->at(0).notes) {
        notes += note + "\n";
    }
    EXPECT_NE(notes.find("ends before"), std::string::npos) << notes;
}

// ---- what a file that was cut holds is there, and that it was cut is said

class ImportCuts : public testing::TestWithParam<const char*> {};

TEST_P(ImportCuts, are_said_wherever_they_are) {
    const TraceFolder folder;
    const std::string format = GetParam();
    const PlannedTrace planned = plan({});
    if (format == "nsys" || format == "rpd") {
        format == "nsys" ? save_nsys(planned, folder / "whole") : save_rpd(planned, folder / "whole");
    } else {
        save(folder / "whole", format == "kineto" ? as_kineto(planned) : as_rocprofv3(planned));
    }
    const std::string whole = content_of(folder / "whole");
    int recordings = 0;
    for (std::size_t size = whole.size() - 1; size > whole.size() / 40; size -= whole.size() / 40) {
        save(folder / "trace", whole.substr(0, size));
        const auto made = try_import(folder, "trace");
        if (!made) {
            EXPECT_EQ(made.error().message.find('\n'), std::string::npos);
            continue;
        }
        ++recordings;
        EXPECT_NE(std::count_if(made->at(0).notes.begin(), made->at(0).notes.end(),
                                [](const std::string& note) { return note.find("ends before") != note.npos; }),
                  0)
            << size << " of " << whole.size();
    }
    EXPECT_GT(recordings, 0);
}

INSTANTIATE_TEST_SUITE_P(Import, ImportCuts, testing::Values("kineto", "rocprofv3", "nsys", "rpd"),
                         [](const auto& of) { return std::string(of.param); });

} // namespace
} // namespace plumb::imported
