/* A libnvidia-ml.so.1 that answers from a text file, for tests of what spectune makes of drivers it cannot have.

   FAKE_NVML names the file. Each line is "key value"; every call reads it anew, so a test may change it at any time:
     init 18              what nvmlInitWithFlags returns
     count 2              number of GPUs
     fail.FUNCTION 3      what a function returns instead of an answer; fail.1.FUNCTION: for GPU 1 only
     1.memory_used 4096   a figure of GPU 1; without the number: of every GPU
     0.processes 71:4096,72:100   pid:MiB
     0.utilization 71:43          pid:percent of the GPU's time, a sample each
   Built with -DOLD_DRIVER it lacks what drivers before 510 lack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int ret_t;
typedef void *device_t;
enum { SUCCESS = 0, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, UNINITIALIZED = 1 };
static int initialised = 0;

static int look_up(const char *key, char *value, size_t size) {
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    int found = 0;
    size_t length = strlen(key);
    if (!file) return 0;
    while (!found && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            snprintf(value, size, "%s", line + length + 1);
            value[strcspn(value, "\n")] = 0;
            found = 1;
        }
    fclose(file);
    return found;
}

static int of_device(device_t device, const char *key, char *value, size_t size) {
    char own[128];
    snprintf(own, sizeof own, "%ld.%s", (long)device - 1, key);
    return look_up(own, value, size) || look_up(key, value, size);
}

static long long number(device_t device, const char *key, long long otherwise) {
    char value[256];
    return of_device(device, key, value, sizeof value) ? atoll(value) : otherwise;
}

static ret_t failing(device_t device, const char *function) {
    char key[160], value[32];
    if (!initialised) return UNINITIALIZED;
    snprintf(key, sizeof key, "fail.%ld.%s", (long)device - 1, function);
    if (device && look_up(key, value, sizeof value)) return atoi(value);
    snprintf(key, sizeof key, "fail.%s", function);
    return look_up(key, value, sizeof value) ? atoi(value) : SUCCESS;
}

#define CHECK(device) do { ret_t failed = failing((device_t)(device), __func__); if (failed) return failed; } while (0)
#define FIGURE(function, key, otherwise) \
    ret_t function(device_t d, unsigned *out) { CHECK(d); *out = (unsigned)number(d, key, otherwise); return SUCCESS; }
#define SM_OR_MEMORY(function, key, sm, memory) \
    ret_t function(device_t d, int which, unsigned *out) { \
        CHECK(d); \
        *out = (unsigned)(which == 2 ? number(d, key "_memory", memory) : number(d, key "_sm", sm)); \
        return SUCCESS; \
    }

ret_t nvmlInitWithFlags(unsigned flags) {
    char value[32];
    (void)flags;
    if (look_up("init", value, sizeof value) && atoi(value)) return atoi(value);
    initialised++;
    return SUCCESS;
}
ret_t nvmlShutdown(void) { CHECK(0); initialised--; return SUCCESS; }
const char *nvmlErrorString(ret_t code) { (void)code; return "as the library says"; }
ret_t nvmlSystemGetDriverVersion(char *out, unsigned size) {
    CHECK(0);
    if (!look_up("driver", out, size)) snprintf(out, size, "570.124.06");
    return SUCCESS;
}
ret_t nvmlSystemGetCudaDriverVersion_v2(int *out) { CHECK(0); *out = (int)number(0, "cuda", 12080); return SUCCESS; }
ret_t nvmlDeviceGetCount_v2(unsigned *out) { CHECK(0); *out = (unsigned)number(0, "count", 1); return SUCCESS; }
ret_t nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *out) {
    *out = (device_t)(long)(index + 1);
    CHECK(*out);
    return SUCCESS;
}
ret_t nvmlDeviceGetUUID(device_t d, char *out, unsigned size) {
    CHECK(d);
    if (!of_device(d, "uuid", out, size)) snprintf(out, size, "GPU-0000000%ld-aaaa", (long)d - 1);
    return SUCCESS;
}
ret_t nvmlDeviceGetName(device_t d, char *out, unsigned size) {
    CHECK(d);
    if (!of_device(d, "name", out, size)) snprintf(out, size, "NVIDIA H200");
    return SUCCESS;
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
ret_t nvmlDeviceGetPciInfo_v3(device_t d, struct pci *out) {
    CHECK(d);
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02lX:00.0", 0x1A + (long)d);
    return SUCCESS;
}
struct memory { unsigned long long total, free, used; };
ret_t nvmlDeviceGetMemoryInfo(device_t d, struct memory *out) {
    CHECK(d);
    out->total = (unsigned long long)number(d, "memory_total", 143771) << 20;
    out->used = (unsigned long long)number(d, "memory_used", 4) << 20;
    out->free = out->total - out->used;
    return SUCCESS;
}
SM_OR_MEMORY(nvmlDeviceGetClockInfo, "clock", 345, 2619)
SM_OR_MEMORY(nvmlDeviceGetMaxClockInfo, "max_clock", 1980, 3201)
SM_OR_MEMORY(nvmlDeviceGetApplicationsClock, "application_clock", 1980, 3201)
FIGURE(nvmlDeviceGetPowerUsage, "power", 75000)
FIGURE(nvmlDeviceGetEnforcedPowerLimit, "power_limit", 700000)
FIGURE(nvmlDeviceGetPowerManagementDefaultLimit, "default_power_limit", 700000)
FIGURE(nvmlDeviceGetPersistenceMode, "persistence", 1)
FIGURE(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen", 5)
FIGURE(nvmlDeviceGetMaxPcieLinkGeneration, "max_pcie_gen", 5)
FIGURE(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 16)
FIGURE(nvmlDeviceGetMaxPcieLinkWidth, "max_pcie_width", 16)
ret_t nvmlDeviceGetTemperature(device_t d, int sensor, unsigned *out) {
    (void)sensor;
    CHECK(d);
    *out = (unsigned)number(d, "temperature", 34);
    return SUCCESS;
}
ret_t nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, unsigned long long *out) {
    CHECK(d);
    *out = (unsigned long long)number(d, "throttle", 1);
    return SUCCESS;
}
ret_t nvmlDeviceGetMigMode(device_t d, unsigned *now, unsigned *pending) {
    CHECK(d);
    *now = *pending = (unsigned)number(d, "mig", 0);
    return SUCCESS;
}
ret_t nvmlDeviceGetEccMode(device_t d, unsigned *now, unsigned *pending) {
    CHECK(d);
    *now = *pending = (unsigned)number(d, "ecc", 1);
    return SUCCESS;
}
ret_t nvmlDeviceGetP2PStatus(device_t d, device_t other, int what, int *out) {
    long long clique = number(d, "nvlink", 0); /* GPUs of one clique, told by its number, are joined; 0: to none */
    CHECK(d);
    *out = what == 2 && clique && clique == number(other, "nvlink", 0) ? 0 : 4;
    return SUCCESS;
}
struct violation { unsigned long long reference_us, violation_ns; };
ret_t nvmlDeviceGetViolationStatus(device_t d, int policy, struct violation *out) {
    char key[32];
    CHECK(d);
    snprintf(key, sizeof key, "violation_ms_%d", policy);
    out->reference_us = 0;
    out->violation_ns = (unsigned long long)number(d, key, 0) * 1000000ULL;
    return SUCCESS;
}
struct process { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; };
static ret_t listed(device_t d, const char *key, unsigned *count, struct process *out) {
    char text[512];
    unsigned found = 0, room = *count;
    if (!of_device(d, key, text, sizeof text)) text[0] = 0;
    for (char *entry = strtok(text, ","); entry; entry = strtok(NULL, ",")) {
        if (out && found < room) {
            char *colon = strchr(entry, ':');
            out[found].pid = (unsigned)atoi(entry);
            out[found].memory = colon ? (unsigned long long)atoll(colon + 1) << 20 : ~0ULL;
        }
        found++;
    }
    *count = found;
    return found > (out ? room : 0) ? INSUFFICIENT_SIZE : SUCCESS;
}
struct sample { unsigned pid; unsigned long long stamp; unsigned sm, memory, encoder, decoder; };
ret_t nvmlDeviceGetProcessUtilization(device_t d, struct sample *out, unsigned *count, unsigned long long since) {
    char text[512];
    unsigned found = 0, room = *count;
    (void)since;
    CHECK(d);
    if (!of_device(d, "utilization", text, sizeof text)) return NOT_FOUND;
    for (char *entry = strtok(text, ","); entry; entry = strtok(NULL, ","), found++)
        if (out && found < room) {
            char *colon = strchr(entry, ':');
            out[found].pid = (unsigned)atoi(entry);
            out[found].sm = colon ? (unsigned)atoi(colon + 1) : 0;
        }
    *count = found;
    return found > (out ? room : 0) ? INSUFFICIENT_SIZE : SUCCESS;
}
#define PROCESSES(function, key) \
    ret_t function(device_t d, unsigned *count, struct process *out) { CHECK(d); return listed(d, key, count, out); }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, "processes")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
#ifndef OLD_DRIVER
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "processes")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
ret_t nvmlDeviceGetCurrentClocksEventReasons(device_t d, unsigned long long *out) {
    CHECK(d);
    *out = (unsigned long long)number(d, "throttle", 1);
    return SUCCESS;
}
#endif
