// Words for the client: the thread's error message and last error, and the process-wide list of broken rules.
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "state.h"

namespace emu {

namespace {

struct ThreadWords {
    std::vector<std::string> said;  // oldest first
    std::string told;               // what recent_message gave out last: valid until its next call
    int last_error = 0;
};

ThreadWords& words() {
    thread_local ThreadWords mine;
    return mine;
}

constexpr size_t kMostSaid = 64;
constexpr size_t kMostViolations = 1000;

struct Record {
    std::mutex lock;
    std::vector<std::string> violations;
    std::vector<std::string> leaks;
};

Record& record() {
    static Record* all = new Record;  // stream workers may report while the process ends
    return *all;
}

}  // namespace

std::string format_text(const char* format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(nullptr, 0, format, args);
    std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
    if (length > 0) vsnprintf(&text[0], text.size() + 1, format, again);
    va_end(again);
    return text;
}

void say(const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::string text = format_text(format, args);
    va_end(args);
    std::vector<std::string>& said = words().said;
    if (said.size() == kMostSaid) said.erase(said.begin());
    said.push_back(std::move(text));
}

const char* recent_message() {
    ThreadWords& mine = words();
    if (mine.said.empty()) return nullptr;
    mine.told.clear();
    for (auto line = mine.said.rbegin(); line != mine.said.rend(); ++line) {
        if (!mine.told.empty()) mine.told += '\n';
        mine.told += *line;
    }
    mine.said.clear();
    return mine.told.c_str();
}

int finish(int code) {
    if (code != 0) words().last_error = code;
    return code;
}

int last_error(bool clear) {
    int code = words().last_error;
    if (clear) words().last_error = 0;
    return code;
}

int reject(int code, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::string text = format_text(format, args);
    va_end(args);
    say("%s", text.c_str());
    return finish(code);
}

void violation(const char* kind, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::string text = std::string(kind) + ": " + format_text(format, args);
    va_end(args);
    fprintf(stderr, "ascend emulator: violation: %s\n", text.c_str());
    {
        std::lock_guard<std::mutex> guard(record().lock);
        if (record().violations.size() < kMostViolations) record().violations.push_back(text);
    }
    if (settings().abort) abort();
}

std::vector<std::string> violations() {
    std::lock_guard<std::mutex> guard(record().lock);
    return record().violations;
}

void clear_violations() {
    std::lock_guard<std::mutex> guard(record().lock);
    record().violations.clear();
}

void keep_leaks(std::vector<std::string> lines) {
    std::lock_guard<std::mutex> guard(record().lock);
    for (std::string& line : lines) record().leaks.push_back(std::move(line));
}

std::vector<std::string> kept_leaks() {
    std::lock_guard<std::mutex> guard(record().lock);
    return record().leaks;
}

void clear_leaks() {
    std::lock_guard<std::mutex> guard(record().lock);
    record().leaks.clear();
}

}  // namespace emu
