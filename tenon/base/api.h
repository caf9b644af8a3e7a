// What the run-time library exports. Everything else in it is hidden.
#pragma once

#define TENON_API __attribute__((visibility("default")))
