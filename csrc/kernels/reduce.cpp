#include "common.h"
PyMethodDef reduce_methods[] = {{nullptr, nullptr, 0, nullptr}};
const mt::IntConstant reduce_constants[] = {{nullptr, 0}};
