// Communicators: the same functions, under the name newer programs include.
#pragma once

#include "hccl.h"
