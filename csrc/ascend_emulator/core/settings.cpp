// Settings: read from the environment once, changed by ascendEmulatorConfigure. A value that cannot be read is reported
// by name on stderr and the default stays, so a typing error is never silent.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>

#include "state.h"

namespace emu {

std::atomic<uint64_t> delay_seed{0};
std::atomic<bool> noop_kernels{false};

namespace {

constexpr int64_t kMiB = 1 << 20;

const ChipProfile kProfiles[] = {
    {"910B", "Ascend910B2", 24, 48, 192 * kMiB, 1984, 65536, true, true, true, false, true},
    {"910A", "Ascend910A", 32, 32, 32 * kMiB, 2048, 65535, true, false, false, true, false},
    {"310P", "Ascend310P3", 8, 7, 16 * kMiB, 1024, 1023, true, false, false, true, false},
    {"310B", "Ascend310B1", 1, 1, 8 * kMiB, 512, 65536, true, false, false, true, false},
    // Limits that no document states are those of the 910B.
    {"950", "Ascend950PR_9589", 32, 64, 128 * kMiB, 1984, 65536, true, true, true, false, true},
};

struct All {
    Settings values;
    std::string version = "8.5.0";
    std::vector<int> visible;
    bool report = false;
    bool lenient = false;
};

bool read_number(const char* text, uint64_t* value) {
    if (*text < '0' || *text > '9') return false;
    char* end = nullptr;
    *value = strtoull(text, &end, 10);
    return *end == '\0';
}

bool read_bytes(const char* text, uint64_t* value) {
    if (*text < '0' || *text > '9') return false;
    char* end = nullptr;
    uint64_t number = strtoull(text, &end, 10);
    int shift = 0;
    if (*end == 'K' || *end == 'k') shift = 10;
    if (*end == 'M' || *end == 'm') shift = 20;
    if (*end == 'G' || *end == 'g') shift = 30;
    if (shift != 0) end++;
    if (*end != '\0' || number == 0 || number > (uint64_t{1} << 40) >> shift) return false;
    *value = number << shift;
    return true;
}

bool read_flag(const char* text, bool* value) {
    if (strcmp(text, "1") == 0) *value = true;
    else if (strcmp(text, "0") == 0 || *text == '\0') *value = false;
    else return false;
    return true;
}

bool apply(All& all, const std::string& key, const char* text, std::string* problem) {
    uint64_t number = 0;
    bool fine = true;
    const char* expected = "";
    if (key == "chip") {
        expected = "910B, 910A, 310P, 310B or 950";
        fine = false;
        for (size_t i = 0; i < std::size(kProfiles); i++) {
            if (strcmp(text, kProfiles[i].name) == 0) {
                all.values.chip = static_cast<Chip>(i);
                fine = true;
            }
        }
    } else if (key == "devices") {
        expected = "a number from 0 to 16";
        fine = read_number(text, &number) && number <= 16;
        if (fine) all.values.devices = static_cast<int>(number);
    } else if (key == "memory") {
        expected = "bytes per device, with K, M or G, at most 1024G";
        fine = read_bytes(text, &number);
        if (fine) all.values.memory = number;
    } else if (key == "delay_seed") {
        expected = "a number; 0 means no delays";
        fine = read_number(text, &number);
        if (fine) all.values.delay_seed = number;
    } else if (key == "noop") {
        expected = "0 or 1";
        fine = read_flag(text, &all.values.noop);
    } else if (key == "report") {
        expected = "0 or 1";
        fine = read_flag(text, &all.report);
    } else if (key == "lenient") {
        expected = "0 or 1";
        fine = read_flag(text, &all.lenient);
    } else if (key == "violations") {
        expected = "report or abort";
        if (strcmp(text, "abort") == 0) all.values.abort = true;
        else if (strcmp(text, "report") == 0) all.values.abort = false;
        else fine = false;
    } else if (key == "cann_version") {
        expected = "three numbers as 8.5.0, with an optional suffix";
        int major, minor, patch;
        fine = sscanf(text, "%d.%d.%d", &major, &minor, &patch) == 3 || strstr(text, ".RC") != nullptr;
        if (fine) all.version = text;
    } else {
        *problem = "no setting \"" + key +
                   "\"; there are chip, devices, memory, delay_seed, noop, report, lenient, "
                   "violations, cann_version";
        return false;
    }
    if (!fine) *problem = key + "=\"" + text + "\" cannot be read; expected " + expected;
    return fine;
}

// "2,3,7": ascending; stops at the first token that is not a further device.
std::vector<int> read_visible(int devices) {
    std::vector<int> visible;
    const char* text = getenv("ASCEND_RT_VISIBLE_DEVICES");
    if (text == nullptr) {
        for (int i = 0; i < devices; i++) visible.push_back(i);
        return visible;
    }
    int last = -1;
    while (*text >= '0' && *text <= '9') {
        char* end = nullptr;
        long number = strtol(text, &end, 10);
        if (number <= last || number >= devices || (*end != ',' && *end != '\0')) break;
        visible.push_back(static_cast<int>(number));
        last = static_cast<int>(number);
        if (*end == '\0') break;
        text = end + 1;
    }
    return visible;
}

void publish(All& all) {
    all.visible = read_visible(all.values.devices);
    delay_seed.store(all.values.delay_seed, std::memory_order_relaxed);
    noop_kernels.store(all.values.noop, std::memory_order_relaxed);
}

void load(All& all) {
    static const char* const keys[][2] = {
        {"ASCEND_EMULATOR_CHIP", "chip"},
        {"ASCEND_EMULATOR_DEVICES", "devices"},
        {"ASCEND_EMULATOR_MEMORY", "memory"},
        {"ASCEND_EMULATOR_DELAY_SEED", "delay_seed"},
        {"ASCEND_EMULATOR_NOOP", "noop"},
        {"ASCEND_EMULATOR_VIOLATIONS", "violations"},
        {"ASCEND_EMULATOR_CANN_VERSION", "cann_version"},
        {"ASCEND_EMULATOR_REPORT", "report"},
        {"ASCEND_EMULATOR_LENIENT", "lenient"},
    };
    all = All{};
    all.values.memory = uint64_t{2} << 30;
    for (const auto& key : keys) {
        const char* text = getenv(key[0]);
        std::string problem;
        if (text != nullptr && !apply(all, key[1], text, &problem)) {
            fprintf(stderr, "ascend emulator: %s: %s\n", key[0], problem.c_str());
        }
    }
    publish(all);
    const char* faults = getenv("ASCEND_EMULATOR_FAULT");
    std::string problem;
    if (faults != nullptr && !add_faults(faults, &problem)) {
        fprintf(stderr, "ascend emulator: ASCEND_EMULATOR_FAULT: %s\n", problem.c_str());
    }
}

All& everything() {
    static All* all = [] {
        All* fresh = new All;
        load(*fresh);
        return fresh;
    }();
    return *all;
}

}  // namespace

const Settings& settings() { return everything().values; }
const ChipProfile& chip_profile() { return kProfiles[static_cast<int>(everything().values.chip)]; }
const char* chip_name(Chip chip) { return kProfiles[static_cast<int>(chip)].name; }
const std::string& cann_version() { return everything().version; }
const std::vector<int>& visible_devices() { return everything().visible; }
bool report_leaks() { return everything().report; }
bool lenient() { return everything().lenient; }

bool configure(const char* key, const char* value, std::string* problem) {
    All changed = everything();
    if (!apply(changed, key, value, problem)) return false;
    everything() = changed;
    publish(everything());
    return true;
}

void set_noop(bool noop) {
    everything().values.noop = noop;
    noop_kernels.store(noop, std::memory_order_relaxed);
}

void reload_settings() {
    clear_faults();
    load(everything());
}

}  // namespace emu
