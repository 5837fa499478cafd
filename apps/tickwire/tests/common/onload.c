/* A library to preload in front of the C library that refuses what Onload refuses: every option of an Internet
 * socket that its user-level sockets do not know (ENOPROTOOPT), and io_uring. What it knows is listed by
 * https://docs.amd.com/r/en-US/ug1586-onload-user/Socket-Options and by its setsockopt. Refusals go, a line
 * each, to the file that TICKWIRE_REFUSED names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct option { int level; int name; };

#define SOCKET(name) {SOL_SOCKET, name}
#define IP(name) {IPPROTO_IP, name}
#define TCP(name) {IPPROTO_TCP, name}

static const struct option KNOWN[] = {
    SOCKET(SO_ACCEPTCONN), SOCKET(SO_BINDTODEVICE), SOCKET(SO_BROADCAST), SOCKET(SO_BUSY_POLL), SOCKET(SO_DEBUG),
    SOCKET(SO_DOMAIN), SOCKET(SO_DONTROUTE), SOCKET(SO_ERROR), SOCKET(SO_KEEPALIVE), SOCKET(SO_LINGER),
    SOCKET(SO_OOBINLINE), SOCKET(SO_PRIORITY), SOCKET(SO_PROTOCOL), SOCKET(SO_RCVBUF), SOCKET(SO_RCVBUFFORCE),
    SOCKET(SO_RCVLOWAT), SOCKET(SO_RCVTIMEO), SOCKET(SO_REUSEADDR), SOCKET(SO_REUSEPORT), SOCKET(SO_SNDBUF),
    SOCKET(SO_SNDBUFFORCE), SOCKET(SO_SNDLOWAT), SOCKET(SO_SNDTIMEO), SOCKET(SO_TIMESTAMP),
    SOCKET(SO_TIMESTAMPNS), SOCKET(SO_TIMESTAMPING), SOCKET(SO_TYPE),
    IP(IP_ADD_MEMBERSHIP), IP(IP_ADD_SOURCE_MEMBERSHIP), IP(IP_DROP_MEMBERSHIP), IP(IP_DROP_SOURCE_MEMBERSHIP),
    IP(IP_MINTTL), IP(IP_MTU), IP(IP_MTU_DISCOVER), IP(IP_MULTICAST_ALL), IP(IP_MULTICAST_IF),
    IP(IP_MULTICAST_LOOP), IP(IP_MULTICAST_TTL), IP(IP_OPTIONS), IP(IP_PKTINFO), IP(IP_RECVERR), IP(IP_RECVOPTS),
    IP(IP_RECVTOS), IP(IP_RECVTTL), IP(IP_TOS), IP(IP_TRANSPARENT), IP(IP_TTL), IP(IP_UNICAST_IF),
    TCP(TCP_CORK), TCP(TCP_DEFER_ACCEPT), TCP(TCP_INFO), TCP(TCP_KEEPCNT), TCP(TCP_KEEPIDLE), TCP(TCP_KEEPINTVL),
    TCP(TCP_MAXSEG), TCP(TCP_NODELAY), TCP(TCP_QUICKACK),
};

static void note(const char *line)
{
    const char *path = getenv("TICKWIRE_REFUSED");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (file >= 0) {
        ssize_t written = write(file, line, strlen(line));
        (void)written;
        close(file);
    }
}

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

typedef int get_call(int, int, int, void *, socklen_t *);
typedef int set_call(int, int, int, const void *, socklen_t);

/* Whether Onload would have the socket, and does not know the option. */
static int refuses(int socket, int level, int name)
{
    int domain = 0;
    socklen_t length = sizeof domain;
    get_call *real = (get_call *)next("getsockopt");
    if (real(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_INET)
        return 0;
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (KNOWN[i].level == level && KNOWN[i].name == name)
            return 0;
    char line[64];
    snprintf(line, sizeof line, "option %d %d\n", level, name);
    note(line);
    errno = ENOPROTOOPT;
    return 1;
}

int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
    /* Onload keeps the kernel's socket in step before it looks at its own. */
    int result = ((set_call *)next("setsockopt"))(socket, level, name, value, length);
    if (result != 0)
        return result;
    return refuses(socket, level, name) ? -1 : 0;
}

int getsockopt(int socket, int level, int name, void *value, socklen_t *length)
{
    if (refuses(socket, level, name))
        return -1;
    return ((get_call *)next("getsockopt"))(socket, level, name, value, length);
}

long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_io_uring_setup) {
        note("io_uring\n");
        errno = ENOSYS;
        return -1;
    }
    return ((long (*)(long, ...))next("syscall"))(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
