/* What libheddle.so exports. Everything else in it is hidden. */
#ifndef HEDDLE_EXPORT_H
#define HEDDLE_EXPORT_H

#if defined(__GNUC__)
#define HEDDLE_API __attribute__((visibility("default")))
/* Hides a class nested in an exported class, which would be exported with it otherwise. */
#define HEDDLE_LOCAL __attribute__((visibility("hidden")))
#else
#define HEDDLE_API
#define HEDDLE_LOCAL
#endif

#endif
