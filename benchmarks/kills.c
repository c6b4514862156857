/* Counts the calls that change files and kills the process at a chosen one; preloaded by kills.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static long left = -1, seen = 0;
static int moment = 0; /* 0: before the call, 1: after it, 2: after half of a write */
void kills_arm(long n, int when) { left = n; moment = when; seen = 0; }
long kills_seen(void) { return seen; }
static void die(void) { kill(getpid(), SIGKILL); }
static int due(void) { seen++; return left > 0 && --left == 0; }
static int plain(int fd) { struct stat s; return fstat(fd, &s) == 0 && S_ISREG(s.st_mode); }
#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define AROUND(call) int now = due(); if (now && moment != 1) die(); int found = call; if (now) die(); return found
ssize_t write(int fd, const void *bytes, size_t size) {
  REAL(write);
  if (!plain(fd)) return real(fd, bytes, size);
  int now = due();
  if (now && moment == 0) die();
  ssize_t done = real(fd, bytes, now && moment == 2 ? size / 2 : size);
  if (now) die();
  return done;
}
int fsync(int fd) { REAL(fsync); AROUND(real(fd)); }
int rename(const char *a, const char *b) { REAL(rename); AROUND(real(a, b)); }
int unlink(const char *a) { REAL(unlink); AROUND(real(a)); }
int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);
  if (!(flags & (O_CREAT | O_TRUNC))) return real(path, flags, mode);
  AROUND(real(path, flags, mode));
}
int open(const char *path, int flags, ...) {
  va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);
  return open64(path, flags, mode);
}
