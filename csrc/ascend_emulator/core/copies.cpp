// Copies: which side each pointer is on is found from the pointer; a `kind` that says otherwise is a broken rule.
//
// A copy now does not wait for any stream: what a queued kernel has not yet written is not there.
#include "copies.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "arena.h"
#include "capture.h"
#include "codes.h"
#include "state.h"
#include "streams.h"

namespace emu {

namespace {

struct Copy {
    void* dst;
    const void* src;
    size_t dst_pitch, src_pitch, width, height;

    // The bytes from the first to the last one touched.
    uint64_t dst_span() const { return (height - 1) * dst_pitch + width; }
    uint64_t src_span() const { return (height - 1) * src_pitch + width; }
};

std::atomic<uint64_t> to_host{0};

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

void perform(const Copy& copy, bool dst_device, bool src_device, const char* by) {
    unsigned char* to =
        dst_device ? reach(address_of(copy.dst), copy.dst_span(), by) : static_cast<unsigned char*>(copy.dst);
    const unsigned char* from =
        src_device ? reach(address_of(copy.src), copy.src_span(), by) : static_cast<const unsigned char*>(copy.src);
    if (to == from) return;
    if (src_device && !dst_device) to_host += copy.width * copy.height;
    for (size_t row = 0; row < copy.height; row++) {
        memmove(to + row * copy.dst_pitch, from + row * copy.src_pitch, copy.width);
    }
}

const char* place_name(const Where& where) {
    switch (where.place) {
        case Place::device: return "device memory";
        case Place::pinned: return "pinned host memory";
        case Place::pageable: break;
    }
    return "host memory";
}

int check_kind(const Where& to, const Where& from, int kind, const char* by) {
    static const char* const names[] = {
        "HOST_TO_HOST", "HOST_TO_DEVICE",        "DEVICE_TO_HOST",         "DEVICE_TO_DEVICE",
        "DEFAULT",      "HOST_TO_BUF_TO_DEVICE", "INNER_DEVICE_TO_DEVICE", "INTER_DEVICE_TO_DEVICE"};
    if (kind < 0 || kind > 7) return reject(ACL_ERROR_INVALID_PARAM, "%s: no copy kind %d", by, kind);
    if (kind == ACL_MEMCPY_DEFAULT) return 0;
    bool to_device = kind == 1 || kind == 3 || kind >= 5;
    bool from_device = kind == 2 || kind == 3 || kind >= 6;
    bool fits = to_device == (to.place == Place::device) && from_device == (from.place == Place::device);
    if (kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE && to.device != from.device) fits = false;
    if (kind == ACL_MEMCPY_INTER_DEVICE_TO_DEVICE && to.device == from.device) fits = false;
    if (fits) return 0;
    violation("copy-kind", "%s: kind %s, but dst is %s and src is %s", by, names[kind], place_name(to),
              place_name(from));
    return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: kind %s, but dst is %s and src is %s", by, names[kind],
                  place_name(to), place_name(from));
}

int check_live(const void* pointer, uint64_t bytes, const Where& where, const char* argument, const char* by) {
    if (where.place != Place::device || live(address_of(pointer), bytes)) return 0;
    std::string what = tell(address_of(pointer));
    violation("bad-copy", "%s: %s %p, %llu bytes, does not lie in one live allocation: %s", by, argument, pointer,
              number(bytes), what.c_str());
    return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: %s %p, %llu bytes, does not lie in one live allocation: %s", by,
                  argument, pointer, number(bytes), what.c_str());
}

// `here` reaches another device's memory only after it has enabled that peer.
int check_peer(const Where& where, int here, const char* by) {
    if (where.place != Place::device || where.device == here || peer_enabled(here, where.device)) return 0;
    return reject(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: device %d reaches memory of device %d; call "
                  "aclrtDeviceEnablePeerAccess first",
                  by, here, where.device);
}

// All that is checked before a copy, whenever it happens.
int check(const Copy& copy, int kind, Where* to, Where* from, const char* by) {
    if (copy.dst == nullptr || copy.src == nullptr) {
        return reject(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", by, copy.dst == nullptr ? "dst" : "src");
    }
    if (int code = require_context()) return code;
    *to = classify(copy.dst);
    *from = classify(copy.src);
    if (int code = check_kind(*to, *from, kind, by)) return code;
    if (int code = check_live(copy.dst, copy.dst_span(), *to, "dst", by)) return code;
    if (int code = check_live(copy.src, copy.src_span(), *from, "src", by)) return code;
    if (to->place != Place::device || from->place != Place::device || to->device == from->device) return 0;
    int here = current_context()->device;
    if (int code = check_peer(*to, here, by)) return code;
    return check_peer(*from, here, by);
}

int now(const Copy& copy, int kind, const char* by) {
    if (int code = refuse_unsafe(by)) return code;
    Where to, from;
    if (int code = check(copy, kind, &to, &from, by)) return code;
    try {
        perform(copy, to.place == Place::device, from.place == Place::device, by);
    } catch (const DeviceFault& fault) {  // freed by another thread meanwhile
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s", fault.text.c_str());
    }
    return 0;
}

int on_stream(const Copy& copy, int kind, void* stream, const char* by) {
    Where to, from;
    if (int code = check(copy, kind, &to, &from, by)) return code;
    bool to_device = to.place == Place::device, from_device = from.place == Place::device;
    if (!to_device && !from_device) {
        return reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: host to host is not supported on a stream", by);
    }
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    if (int code = check_peer(to, where->device, by)) return code;
    if (int code = check_peer(from, where->device, by)) return code;
    bool pageable = to.place == Place::pageable || from.place == Place::pageable;
    if (pageable && kind != ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
        if (int code = refuse_captured(*where, "a copy of pageable memory, which waits")) return code;
    }
    Task task;
    task.name = by;
    task.ranges = {Range{address_of(copy.dst), copy.dst_span(), true},
                   Range{address_of(copy.src), copy.src_span(), false}};
    if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
        // The bytes are taken at once: the source may be gone when the stream comes to the copy.
        auto bytes = std::make_shared<std::vector<unsigned char>>(
            static_cast<const unsigned char*>(copy.src), static_cast<const unsigned char*>(copy.src) + copy.width);
        task.ranges.pop_back();
        task.run = [copy, bytes, by] {
            Copy staged = copy;
            staged.src = bytes->data();
            perform(staged, true, false, by);
        };
    } else {
        task.run = [copy, to_device, from_device, by] { perform(copy, to_device, from_device, by); };
    }
    if (int code = launch(stream, std::move(task))) return code;
    if (pageable && kind != ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
        // In the stream's order, but finished when the call returns; an earlier task's failure waits for its own report.
        if (int code = where->wait_for(where->last(), -1, 0)) return reject(code, "%s: the stream was abandoned", by);
    }
    return 0;
}

int check_fill(void* dst, size_t most, size_t count, const char* by) {
    if (count > most) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: count %llu is more than maxCount %llu", by, number(count),
                      number(most));
    }
    if (dst == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: devPtr is NULL", by);
    if (int code = require_context()) return code;
    return check_live(dst, count, classify(dst), "devPtr", by);
}

}  // namespace

int copy_now(void* dst, size_t most, const void* src, size_t count, int kind) {
    if (count == 0) return 0;
    if (count > most) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpy: count %llu is more than destMax %llu", number(count),
                      number(most));
    }
    return now(Copy{dst, src, count, count, count, 1}, kind, "aclrtMemcpy");
}

int copy_on_stream(void* dst, size_t most, const void* src, size_t count, int kind, void* stream, const char* by) {
    if (count == 0) return 0;
    if (count > most) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: count %llu is more than destMax %llu", by, number(count),
                      number(most));
    }
    if (kind == ACL_MEMCPY_HOST_TO_HOST) {
        return reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: HOST_TO_HOST is not supported", by);
    }
    return on_stream(Copy{dst, src, count, count, count, 1}, kind, stream, by);
}

int copy_rows(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height, int kind,
              bool async, void* stream) {
    const char* by = async ? "aclrtMemcpy2dAsync" : "aclrtMemcpy2d";
    if (width == 0 || height == 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: width and height must not be 0", by);
    if (width > dst_pitch || width > src_pitch) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: width %llu is more than a pitch (%llu, %llu)", by, number(width),
                      number(dst_pitch), number(src_pitch));
    }
    if (kind != ACL_MEMCPY_HOST_TO_DEVICE && kind != ACL_MEMCPY_DEVICE_TO_HOST && kind != ACL_MEMCPY_DEVICE_TO_DEVICE &&
        kind != ACL_MEMCPY_DEFAULT) {
        return reject(ACL_ERROR_INVALID_PARAM, "%s: copy kind %d is not supported", by, kind);
    }
    Copy copy{dst, src, dst_pitch, src_pitch, width, height};
    return async ? on_stream(copy, kind, stream, by) : now(copy, kind, by);
}

int fill_now(void* dst, size_t most, int value, size_t count) {
    if (count == 0) return 0;
    const char* by = "aclrtMemset";
    if (int code = refuse_unsafe(by)) return code;
    if (int code = check_fill(dst, most, count, by)) return code;
    try {
        bool device = on_device(address_of(dst));
        memset(device ? reach(address_of(dst), count, by) : dst, value, count);
    } catch (const DeviceFault& fault) { return reject(ACL_ERROR_RT_PARAM_INVALID, "%s", fault.text.c_str()); }
    return 0;
}

int fill_on_stream(void* dst, size_t most, int value, size_t count, void* stream) {
    if (count == 0) return 0;
    const char* by = "aclrtMemsetAsync";
    if (int code = check_fill(dst, most, count, by)) return code;
    if (!on_device(address_of(dst))) {
        return reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: %p is host memory", by, dst);
    }
    Task task;
    task.name = by;
    task.ranges = {Range{address_of(dst), count, true}};
    task.run = [dst, value, count, by] { memset(reach(address_of(dst), count, by), value, count); };
    return launch(stream, std::move(task));
}

int overflow_status(void* out, size_t bytes, void* stream) {
    const char* by = "aclrtGetOverflowStatus";
    if (bytes < 64) return reject(ACL_ERROR_INVALID_PARAM, "%s: outputSize must be at least 64", by);
    if (int code = check_fill(out, bytes, 64, by)) return code;
    // Kernels here compute with infinities and NaN, so no overflow is ever flagged.
    Task task;
    task.name = by;
    task.ranges = {Range{address_of(out), 64, true}};
    task.run = [out, by] { memset(reach(address_of(out), 64, by), 0, 64); };
    return launch(stream, std::move(task));
}

uint64_t bytes_to_host() { return to_host; }

}  // namespace emu
