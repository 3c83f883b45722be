/* Loaded into programs of the other processor before their own libraries: what they start in turn is handed to qemu
 * where it is of that processor, too: by execve, execv, execvp, posix_spawn and posix_spawnp, which Rust and Python
 * call. So nothing has to be registered with the kernel, which refuses such programs. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

/* Programs of this machine cannot load it, and nobody is to see it in an environment. */
__attribute__((constructor)) static void hide(void) { unsetenv("LD_PRELOAD"); }

/* Where a program is that is started from `folder`. qemu opens files in SYSROOT where they are there, but starts those
 * of this machine. */
static void seen_from_here(const char *folder, const char *path, char outside[PATH_MAX]) {
  snprintf(outside, PATH_MAX, "%s%s", *path == '/' ? "/proc/self/root" : folder, path);
}

/* Writes where PATH has a program; 0, or the number of the error. */
static int find(const char *name, char path[PATH_MAX]) {
  const char *folder = getenv("PATH");
  char outside[PATH_MAX];
  if (strchr(name, '/') || !folder) {
    snprintf(path, PATH_MAX, "%s", name);
    return 0;
  }
  while (folder) {
    const char *end = strchrnul(folder, ':');
    snprintf(path, PATH_MAX, "%.*s/%s", end == folder ? 1 : (int)(end - folder), end == folder ? "." : folder, name);
    seen_from_here("", path, outside);
    if (!access(outside, X_OK))
      return 0;
    folder = *end ? end + 1 : NULL;
  }
  return ENOENT;
}

/* Where a child is told to begin: what posix_spawn_file_actions_t holds is not to be read. */
static __thread const posix_spawn_file_actions_t *moves;
static __thread char folder_of_child[PATH_MAX];

int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *folder) {
  int (*next)(posix_spawn_file_actions_t *, const char *) = dlsym(RTLD_NEXT, "posix_spawn_file_actions_addchdir_np");
  moves = actions;
  snprintf(folder_of_child, PATH_MAX, "%s/", folder);
  return next(actions, folder);
}

static int is_of_this_processor(const char *path) {
  Elf64_Ehdr header;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? -1 : read(file, &header, sizeof header);
  if (file >= 0)
    close(file);
  return size == sizeof header && !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_machine == EM_AARCH64;
}

/* The words that start a program from `folder`; `words` has space for eight more than `arguments` has. Gives the
 * program.
 */
static const char *by_qemu(const char *folder, const char *path, char *const arguments[], const char *words[]) {
  char outside[PATH_MAX];
  const char *before[] = {QEMU, "-L", SYSROOT, "-E", "LD_PRELOAD=" THIS, "-0", arguments[0], path};
  int count = 0;
  seen_from_here(folder, path, outside);
  if (arguments[0] && is_of_this_processor(outside)) {
    for (; count < 8; count++)
      words[count] = before[count];
    arguments++;
    path = QEMU;
  }
  while ((words[count++] = *arguments++))
    ;
  return path;
}

static int length(char *const list[]) {
  int count = 0;
  while (list[count])
    count++;
  return count;
}

int execve(const char *path, char *const arguments[], char *const environment[]) {
  const char *words[length(arguments) + 9];
  path = by_qemu("", path, arguments, words);
  return syscall(SYS_execve, path, words, environment);
}

int execv(const char *path, char *const arguments[]) { return execve(path, arguments, environ); }

int execvp(const char *name, char *const arguments[]) {
  char path[PATH_MAX];
  errno = find(name, path);
  return errno ? -1 : execve(path, arguments, environ);
}

int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
  int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
              char *const[]) = dlsym(RTLD_NEXT, "posix_spawn");
  const char *words[length(arguments) + 9], *folder = actions && actions == moves ? folder_of_child : "";
  char outside[PATH_MAX];
  moves = NULL;
  seen_from_here(folder, path, outside);
  /* qemu makes no `vfork`, and so nobody would hear of a program that is not there. */
  if (access(outside, X_OK))
    return errno;
  path = by_qemu(folder, path, arguments, words);
  return next(child, path, actions, attributes, (char *const *)words, environment);
}

int posix_spawnp(pid_t *child, const char *name, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
  char path[PATH_MAX];
  int error = find(name, path);
  if (error)
    moves = NULL;
  return error ? error : posix_spawn(child, path, actions, attributes, arguments, environment);
}
