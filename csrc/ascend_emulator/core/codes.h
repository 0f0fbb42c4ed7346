// The runtime's codes and enums that only the runtime uses, as the vendor's documents give them.
#pragma once

#include "acl.h"

constexpr int ACL_ERROR_INVALID_FILE = 100003;
constexpr int ACL_ERROR_REPEAT_SUBSCRIBE = 100033;
constexpr int ACL_ERROR_STREAM_NOT_SUBSCRIBE = 100034;
constexpr int ACL_ERROR_THREAD_NOT_SUBSCRIBE = 100035;
constexpr int ACL_ERROR_WAIT_CALLBACK_TIMEOUT = 100036;
constexpr int ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID = 107006;
constexpr int ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL = 107007;
constexpr int ACL_ERROR_RT_STREAM_NO_CB_REG = 107015;
constexpr int ACL_ERROR_RT_INVALID_MEMORY_TYPE = 107016;
constexpr int ACL_ERROR_RT_SYSPARAMOPT_NOT_SET = 107021;
constexpr int ACL_ERROR_RT_DEVICE_TASK_ABORT = 107022;
constexpr int ACL_ERROR_RT_STREAM_ABORT = 107023;
constexpr int ACL_ERROR_RT_RESOURCE_ALLOC_FAIL = 207005;
constexpr int ACL_ERROR_RT_NO_EVENT_RESOURCE = 207007;
constexpr int ACL_ERROR_RT_NO_STREAM_RESOURCE = 207008;
constexpr int ACL_ERROR_RT_INTERNAL_ERROR = 507000;
constexpr int ACL_ERROR_RT_EVENT_NOT_COMPLETE = 507006;
constexpr int ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046;
constexpr int ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047;

enum aclrtMemcpyKind : int {
    ACL_MEMCPY_HOST_TO_HOST = 0,
    ACL_MEMCPY_HOST_TO_DEVICE = 1,
    ACL_MEMCPY_DEVICE_TO_HOST = 2,
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
    ACL_MEMCPY_DEFAULT = 4,
    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
    ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
    ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
};

constexpr uint32_t ACL_EVENT_SYNC = 0x1;
constexpr uint32_t ACL_EVENT_CAPTURE_STREAM_PROGRESS = 0x2;
constexpr uint32_t ACL_EVENT_TIME_LINE = 0x8;
constexpr uint32_t ACL_EVENT_ALL_FLAGS = 0x7b;  // with DEVICE_USE_ONLY, EXTERNAL, IPC
constexpr uint32_t ACL_STREAM_ALL_FLAGS = 0x3f;

constexpr int ACL_MEM_LOCATION_TYPE_HOST = 0;
constexpr int ACL_MEM_LOCATION_TYPE_DEVICE = 1;
constexpr int ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2;

struct aclrtPtrAttributes {
    uint32_t id;
    int32_t type;
    uint32_t pageSize;
    uint32_t rsv[4];
};
