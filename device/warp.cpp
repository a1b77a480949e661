// A multiprocessor for tests: every thread of a warp is a fiber, and lanes meet at the warp
// operations as CUDA asks of them. What a GPU would leave undefined ends the launch instead.
//
// Lanes run one at a time, each until it waits or leaves, in an order that keeps changing: what
// depends on it is a race within the warp. Few blocks walk the whole grid, so that every kernel
// strides through its items.
#undef _FORTIFY_SOURCE      // it takes a jump to another stack for an error
#include "warp.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace warp {

thread_local Index thread_index, block_index, block_size, grid_size;

namespace {

const int LANES_A_WARP = 32;
const unsigned THREADS_A_BLOCK = 128;
const int64_t MOST_BLOCKS = 3;
const size_t STACK_BYTES = 4 << 20;
const char *const OPERATION_NAME[] = {"__shfl_sync", "__shfl_xor_sync", "__ballot_sync",
                                      "__syncwarp"};

enum State { READY, WAITING, GONE };

struct Lane {
    State state;
    Operation operation;
    unsigned mask;
    int argument, width;
    uint64_t value, result;
    const void *place;          // where in the kernel it waits
    void *stack;
    bool is_started;
    ucontext_t start;
    jmp_buf resume;
};

// Of one host thread: several may launch at a time.
struct Machine {
    const char *kernel;
    void (*body)(void **);
    void **argument;
    unsigned first_thread;      // of the warp, in its block
    unsigned threads_a_fiber;   // all of a block where no lane needs another
    Lane lane[LANES_A_WARP];
    int current;
    unsigned turn;
    jmp_buf scheduler;
    char failure[4096];
};
thread_local Machine *machine;

// Say in the failure where in the kernel something is; warp.py looks the line up.
const void *offset_in_library(const void *place)
{
    Dl_info found;
    if (!dladdr(place, &found)) return place;
    return (const void *)((const char *)place - (const char *)found.dli_fbase);
}

__attribute__((format(printf, 1, 2))) void add_failure(const char *format, ...)
{
    const size_t used = strlen(machine->failure);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(machine->failure + used, sizeof machine->failure - used, format, arguments);
    va_end(arguments);
}

void describe_lane(int number)
{
    const Lane &lane = machine->lane[number];
    const unsigned thread = machine->first_thread + number;
    if (lane.state == GONE) add_failure("\n  thread %u has left the kernel", thread);
    else add_failure("\n  thread %u waits at %s, mask %08x, <%p>", thread,
                     OPERATION_NAME[lane.operation], lane.mask, offset_in_library(lane.place));
}

void begin_failure(int number)
{
    machine->failure[0] = 0;
    add_failure("kernel %s, block %u, thread %u: ", machine->kernel, block_index.x,
                machine->first_thread + number);
}

// Back to the scheduler, until it resumes this lane.
void suspend(Lane &lane)
{
    if (_setjmp(lane.resume) == 0) _longjmp(machine->scheduler, 1);
}

void run_fiber()
{
    for (;;) {
        for (unsigned t = 0; t < machine->threads_a_fiber; ++t) {
            thread_index.x = machine->first_thread + machine->current + t;
            machine->body(machine->argument);
        }
        Lane &lane = machine->lane[machine->current];
        lane.state = GONE;
        suspend(lane);
    }
}

// Let a lane run until it waits or leaves.
__attribute__((noinline)) void resume(int number)
{
    Lane &lane = machine->lane[number];
    machine->current = number;
    thread_index.x = machine->first_thread + number;
    if (_setjmp(machine->scheduler) != 0) return;
    if (lane.is_started) _longjmp(lane.resume, 1);
    lane.is_started = true;
    if (!lane.stack)
        lane.stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    getcontext(&lane.start);
    lane.start.uc_stack.ss_sp = lane.stack;
    lane.start.uc_stack.ss_size = STACK_BYTES;
    makecontext(&lane.start, run_fiber, 0);
    setcontext(&lane.start);
}

// The lane that a lane reads from.
int source_lane(const Lane &lane, int number)
{
    const int base = number & ~(lane.width - 1);
    if (lane.operation == SHUFFLE) return base | (lane.argument & (lane.width - 1));
    const int other = number ^ lane.argument;
    return (other & ~(lane.width - 1)) == base ? other : number;
}

// Whether all lanes of a mask wait for one another.
bool is_complete(const Lane &first)
{
    for (int o = 0; o < LANES_A_WARP; ++o) {
        const Lane &other = machine->lane[o];
        if ((first.mask >> o & 1) && !(other.state == WAITING && other.mask == first.mask
                                       && other.operation == first.operation))
            return false;
    }
    return true;
}

// Give the lanes of a complete mask what they asked for; false where that is undefined.
bool join(unsigned mask)
{
    unsigned ballot = 0;
    for (int o = 0; o < LANES_A_WARP; ++o)
        if ((mask >> o & 1) && machine->lane[o].value) ballot |= 1u << o;
    for (int o = 0; o < LANES_A_WARP; ++o) {
        if (!(mask >> o & 1)) continue;
        Lane &lane = machine->lane[o];
        lane.result = ballot;
        if (lane.operation == BALLOT || lane.operation == SYNC) continue;
        const int from = source_lane(lane, o);
        if (!(mask >> from & 1)) {
            begin_failure(o);
            add_failure("a shuffle reads lane %d, which is not in the mask", from);
            describe_lane(o);
            return false;
        }
        lane.result = machine->lane[from].value;
    }
    for (int o = 0; o < LANES_A_WARP; ++o)
        if (mask >> o & 1) machine->lane[o].state = READY;
    return true;
}

// Let waiting lanes go on whose masks are complete; false where something is wrong.
bool join_lanes()
{
    bool progress = false;
    int waiting = -1;
    for (int l = 0; l < LANES_A_WARP; ++l) {
        const Lane &lane = machine->lane[l];
        if (lane.state != WAITING) continue;
        waiting = l;
        if (!is_complete(lane)) continue;
        if (!join(lane.mask)) return false;
        progress = true;
    }
    if (progress || waiting < 0) return true;
    const unsigned mask = machine->lane[waiting].mask;
    bool departed = false;
    for (int o = 0; o < LANES_A_WARP; ++o)
        departed |= (mask >> o & 1) && machine->lane[o].state == GONE;
    begin_failure(waiting);
    add_failure(departed ? "the mask names a lane that has left the kernel"
                         : "the lanes of the mask have diverged and wait for ever");
    for (int o = 0; o < LANES_A_WARP; ++o)
        if (mask >> o & 1) describe_lane(o);
    return false;
}

bool run_warp(unsigned first_thread)
{
    machine->first_thread = first_thread;
    machine->threads_a_fiber = 1;
    for (int l = 0; l < LANES_A_WARP; ++l) machine->lane[l].state = READY;
    for (;;) {
        bool is_left = true;
        machine->turn += 7;
        for (int k = 0; k < LANES_A_WARP; ++k) {
            const int l = (13 * k + machine->turn) % LANES_A_WARP;
            if (machine->lane[l].state == READY) resume(l);
            if (machine->failure[0]) return false;
            is_left &= machine->lane[l].state == GONE;
        }
        if (is_left) return true;
        if (!join_lanes()) return false;
    }
}

// All threads of a block one after another, where none meets another.
bool run_apart()
{
    machine->first_thread = 0;
    machine->threads_a_fiber = THREADS_A_BLOCK;
    machine->lane[0].state = READY;
    resume(0);
    return !machine->failure[0];
}

}  // namespace

uint64_t meet(Operation operation, unsigned mask, uint64_t value, int argument, int width)
{
    const unsigned thread = thread_index.x;
    Lane &lane = machine->lane[machine->current];
    lane.operation = operation;
    lane.mask = mask;
    lane.value = value;
    lane.argument = argument;
    lane.width = width;
    lane.place = (const char *)__builtin_return_address(0) - 1;
    lane.state = WAITING;
    const int number = (int)(thread % LANES_A_WARP);
    const char *wrong = nullptr;
    if (machine->threads_a_fiber > 1) wrong = "a kernel without FOR_EACH_GROUP meets other lanes";
    else if (!(mask >> number & 1)) wrong = "the mask leaves out the lane that gives it";
    else if (width < 1 || width > LANES_A_WARP || (width & (width - 1)))
        wrong = "the width is no power of two";
    if (wrong) {
        machine->failure[0] = 0;
        add_failure("kernel %s, block %u, thread %u: %s\n  thread %u calls %s, mask %08x, <%p>",
                    machine->kernel, block_index.x, thread, wrong, thread,
                    OPERATION_NAME[operation], mask, offset_in_library(lane.place));
    }
    suspend(lane);      // for ever, if something is wrong
    return lane.result;
}

void launch(const char *kernel, int64_t count, int lanes, void (*body)(void **), void **argument)
{
    machine->kernel = kernel;
    machine->body = body;
    machine->argument = argument;
    int64_t blocks = (count * lanes + THREADS_A_BLOCK - 1) / THREADS_A_BLOCK;
    blocks = blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
    block_size.x = THREADS_A_BLOCK;
    grid_size.x = (unsigned)blocks;
    for (int64_t block = blocks - 1; block >= 0; --block) {
        block_index.x = (unsigned)block;
        bool is_good = true;
        if (lanes == 1) is_good = run_apart();
        else for (unsigned first = 0; first < THREADS_A_BLOCK && is_good; first += LANES_A_WARP)
            is_good = run_warp(first);
        if (is_good) continue;
        // The fibers stand in the middle of the kernel: begin anew next time.
        for (Lane &lane : machine->lane) lane.is_started = false;
        return;
    }
}

}  // namespace warp

// As the host library has it; -1 where a launch failed. Like a GPU, it does not look at *halt.
extern "C" long long vfx_run(int, int n_launches, void (**entry)(void **), void ***argument,
                             long long repeat, const int *)
{
    if (!warp::machine) warp::machine = new warp::Machine();
    warp::machine->failure[0] = 0;
    for (long long r = 0; r < repeat; ++r)
        for (int l = 0; l < n_launches; ++l) {
            entry[l](argument[l]);
            if (warp::machine->failure[0]) return -1;
        }
    return repeat;
}

extern "C" int vfx_max_threads() { return 1; }

// What was wrong with the last launch of this thread.
extern "C" const char *vfx_failure() { return warp::machine ? warp::machine->failure : ""; }
