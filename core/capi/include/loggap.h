/* The C interface of loggap's core. Generated from core/capi; do not edit.
 *
 * loggap measures a link as the parameters of LogGP, and predicts with them
 * what communication takes. core/capi/examples/firmware.c is a whole program for
 * a board; the section "From C" of docs/embedded.md says how to build and link it.
 *
 * Rules that hold for all functions:
 *
 * - Units. Times are picoseconds in 64 bits (up to 213 days), sizes are bytes,
 *   times per byte are 2^-16 picoseconds per byte. Names say so: _ps, _q16.
 * - Memory. Nothing is allocated. Memory is lent for one call, or for the life
 *   of an object, aligned to LOGGAP_ALIGNMENT; its content does not matter.
 *   How much: a function whose name ends in _bytes says it at run time, a macro
 *   whose name ends in _BYTES as a constant.
 * - Pointers. Null, misaligned pointers and undersized memory give an error.
 *   Other pointers have to be valid for the lengths that come with them. What a
 *   function writes to must not overlap anything else that it is given. An
 *   array of no elements may be null. `detail` may always be null. What a call
 *   reads (options, arrays, the bytes of a schedule) stays as it is until the
 *   call returns: callbacks must not change it, nor look at what the call
 *   writes to. The memory of an object is neither moved, copied nor written to
 *   while the object is in use.
 * - Errors. A function that returns int32_t returns a loggap_status: 0 when it
 *   did all that it says, otherwise why not; loggap_detail says where.
 * - Threads. The library has no state of its own. Calls on different memory may
 *   run on different threads at the same time; an object belongs to one thread
 *   at a time. Callbacks run on the calling thread. They have to return
 *   normally: no longjmp and no exception through the library. They may call
 *   the library with other memory.
 * - Numbers that stand for a choice are of type uint32_t; any other value than
 *   those of the enumeration is refused.
 */

#ifndef LOGGAP_H
#define LOGGAP_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#define LOGGAP_ALIGNAS alignas(8)
#else
#define LOGGAP_ALIGNAS _Alignas(8)
#endif

/* loggap_clock.picos_per_tick_q32 of a counter of `hz` ticks a second. */
#define LOGGAP_PICOS_PER_TICK_Q32(hz) \
  (((1000000000000ull / (hz)) << 32) + (((1000000000000ull % (hz)) << 32) / (hz)))

/* Bytes to lend, as constants: what the functions of the same names say, or a
 * little more. Arguments are integer constants. */
#define LOGGAP_AT_LEAST_A_FRAME(size) ((size) > 448 ? ((size) + 7) / 8 * 8 : 448)
#define LOGGAP_SERVE_BYTES(size) ((size_t)LOGGAP_AT_LEAST_A_FRAME(size))
#define LOGGAP_RESPONDER_BYTES(size) ((size_t)LOGGAP_AT_LEAST_A_FRAME(size) + 592)
#define LOGGAP_ASSESS_BYTES(largest, coarse, sizes, repetitions) \
  (2 * (size_t)(LOGGAP_AT_LEAST_A_FRAME(largest) > sizeof(struct loggap_profile) / 2 \
                    ? LOGGAP_AT_LEAST_A_FRAME(largest) : 0) + 4 * (size_t)(coarse) + \
   (size_t)(sizes) * (32 * (size_t)(repetitions) + 236) + 32)
#define LOGGAP_FIT_BYTES(points) (56 * (size_t)(points) + 32)


/**
 * Required alignment of lent memory, in bytes.
 */
#define LOGGAP_ALIGNMENT 8

/**
 * Upper bound of an encoded profile, in bytes. A profile of one range takes about 110.
 */
#define LOGGAP_PROFILE_BYTES 3952

/**
 * Upper bound of `loggap_detector_bytes`, as a constant.
 */
#define LOGGAP_DETECTOR_BYTES 704

/**
 * Longest Ethernet frame without its checksum, in bytes.
 */
#define LOGGAP_ETHERNET_FRAME 1514

/**
 * Longest message in an Ethernet frame, in bytes.
 */
#define LOGGAP_ETHERNET_MESSAGE 1496

/**
 * Maximum number of ranges in a profile.
 */
#define LOGGAP_MAX_RANGES 8

/**
 * Maximum number of warnings in a report.
 */
#define LOGGAP_MAX_WARNINGS 24

/**
 * Minimum memory of a responder, in bytes. Memory beyond that raises the
 * largest message that it accepts: `LOGGAP_SERVE_BYTES(size)` suffices for
 * messages of up to `size` bytes.
 */
#define LOGGAP_SERVE_BYTES_LEAST 448

/**
 * Minimum memory of a responder, in bytes: `LOGGAP_RESPONDER_BYTES(size)`
 * suffices for messages of up to `size` bytes.
 */
#define LOGGAP_RESPONDER_BYTES_LEAST 1040

/**
 * Version of this interface. It changes whenever a struct, a constant or the
 * meaning of a function changes.
 */
#define LOGGAP_ABI_VERSION 2

/**
 * Length of every control frame, in bytes.
 */
#define LOGGAP_FRAME_BYTES 448

/**
 * Maximum number of different rounds that one frame announces.
 */
#define LOGGAP_FRAME_ROUNDS 16

/**
 * Kind of an action.
 */
enum loggap_action_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Nothing: wait for the next message.
   */
  LOGGAP_ACTION_KIND_NOTHING = 0,
  /**
   * Send `message`.
   */
  LOGGAP_ACTION_KIND_SEND = 1,
  /**
   * Send `message`, then call `loggap_responder_more` for the next action.
   */
  LOGGAP_ACTION_KIND_SEND_MORE = 2,
  /**
   * The session is over; send `message` first if it has bytes.
   */
  LOGGAP_ACTION_KIND_END = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_action_kind loggap_action_kind;
#else
typedef uint32_t loggap_action_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Algorithm of a collective of Schedgen 2.
 */
enum loggap_algorithm_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Chosen by size and number of ranks.
   */
  LOGGAP_ALGORITHM_KIND_AUTO = 0,
  /**
   * Directly between the root and each other rank.
   */
  LOGGAP_ALGORITHM_KIND_LINEAR = 1,
  /**
   * Along a binomial tree.
   */
  LOGGAP_ALGORITHM_KIND_BINOMIAL_TREE = 2,
  /**
   * Recursive doubling or halving.
   */
  LOGGAP_ALGORITHM_KIND_RECURSIVE_DOUBLING = 3,
  /**
   * Along a ring.
   */
  LOGGAP_ALGORITHM_KIND_RING = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_algorithm_kind loggap_algorithm_kind;
#else
typedef uint32_t loggap_algorithm_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A collective operation with a closed form.
 */
enum loggap_form_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Linear scatter.
   */
  LOGGAP_FORM_KIND_SCATTER = 0,
  /**
   * Linear gather.
   */
  LOGGAP_FORM_KIND_GATHER = 1,
  /**
   * Broadcast or reduction along a binomial tree.
   */
  LOGGAP_FORM_KIND_BINOMIAL_TREE = 2,
  /**
   * Dissemination: a barrier or an allgather.
   */
  LOGGAP_FORM_KIND_DISSEMINATION = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_form_kind loggap_form_kind;
#else
typedef uint32_t loggap_form_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Format of a schedule.
 */
enum loggap_format_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * GOAL text.
   */
  LOGGAP_FORMAT_KIND_TEXT = 0,
  /**
   * The binary format of LogGOPSim's `txt2bin`.
   */
  LOGGAP_FORMAT_KIND_REFERENCE = 1,
  /**
   * loggap's own binary format, `.lgs`.
   */
  LOGGAP_FORMAT_KIND_NATIVE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_format_kind loggap_format_kind;
#else
typedef uint32_t loggap_format_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Kind of an operation.
 */
enum loggap_operation_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Sends `amount` bytes to `peer`.
   */
  LOGGAP_OPERATION_KIND_SEND = 0,
  /**
   * Receives `amount` bytes from `peer`.
   */
  LOGGAP_OPERATION_KIND_RECEIVE = 1,
  /**
   * Computes for `amount` ps.
   */
  LOGGAP_OPERATION_KIND_CALC = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_operation_kind loggap_operation_kind;
#else
typedef uint32_t loggap_operation_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A communication pattern, with the options that it uses besides ranks and
 * size. The patterns of Schedgen 2 begin with `Mpi`.
 */
enum loggap_pattern_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Broadcast along a binomial tree: root.
   */
  LOGGAP_PATTERN_KIND_BINOMIAL_BROADCAST = 0,
  /**
   * Reduction along a binomial tree: root.
   */
  LOGGAP_PATTERN_KIND_BINOMIAL_REDUCE = 1,
  /**
   * Broadcast along a binary tree: root.
   */
  LOGGAP_PATTERN_KIND_BINARY_BROADCAST = 2,
  /**
   * Dissemination: a barrier, or an allgather of fixed size.
   */
  LOGGAP_PATTERN_KIND_DISSEMINATION = 3,
  /**
   * Dissemination to several ranks per round: ways.
   */
  LOGGAP_PATTERN_KIND_N_WAY_DISSEMINATION = 4,
  /**
   * Two disseminations, one after the other.
   */
  LOGGAP_PATTERN_KIND_CHAINED_DISSEMINATION = 5,
  /**
   * Broadcast in segments along a ring: root, segment.
   */
  LOGGAP_PATTERN_KIND_PIPELINED_RING = 6,
  /**
   * As the pipelined ring, but each rank handles one segment at a time: root, segment.
   */
  LOGGAP_PATTERN_KIND_PIPELINED_RING_BLOCKING = 7,
  /**
   * One message around the ring in each direction.
   */
  LOGGAP_PATTERN_KIND_DOUBLE_RING = 8,
  /**
   * Linear gather: root.
   */
  LOGGAP_PATTERN_KIND_GATHER = 9,
  /**
   * Linear scatter: root.
   */
  LOGGAP_PATTERN_KIND_SCATTER = 10,
  /**
   * Barrier through rank 0.
   */
  LOGGAP_PATTERN_KIND_LINEAR_BARRIER = 11,
  /**
   * Equal messages between all pairs.
   */
  LOGGAP_PATTERN_KIND_ALL_TO_ALL = 12,
  /**
   * Large messages to the root, small ones elsewhere: root, skew, outcast.
   */
  LOGGAP_PATTERN_KIND_ALL_TO_ALL_SKEWED = 13,
  /**
   * Allreduce by recursive halving and doubling: compute.
   */
  LOGGAP_PATTERN_KIND_RECURSIVE_DOUBLING = 14,
  /**
   * Allreduce along a ring.
   */
  LOGGAP_PATTERN_KIND_RING_ALLREDUCE = 15,
  /**
   * One iteration of training ResNet-152, which fixes the message sizes.
   */
  LOGGAP_PATTERN_KIND_RESNET = 16,
  /**
   * One message in each random pair: seed.
   */
  LOGGAP_PATTERN_KIND_RANDOM_PAIRS = 17,
  /**
   * One message each way in each random pair: seed.
   */
  LOGGAP_PATTERN_KIND_RANDOM_PAIRS_BOTH_WAYS = 18,
  /**
   * Broadcast as in Schedgen 2: root, algorithm, window.
   */
  LOGGAP_PATTERN_KIND_MPI_BROADCAST = 19,
  /**
   * Reduction as in Schedgen 2: root, algorithm.
   */
  LOGGAP_PATTERN_KIND_MPI_REDUCE = 20,
  /**
   * Allreduce as in Schedgen 2: algorithm, compute.
   */
  LOGGAP_PATTERN_KIND_MPI_ALLREDUCE = 21,
  /**
   * Reduce-scatter as in Schedgen 2: algorithm, compute.
   */
  LOGGAP_PATTERN_KIND_MPI_REDUCE_SCATTER = 22,
  /**
   * Allgather as in Schedgen 2: algorithm, compute.
   */
  LOGGAP_PATTERN_KIND_MPI_ALLGATHER = 23,
  /**
   * All-to-all as in Schedgen 2: window.
   */
  LOGGAP_PATTERN_KIND_MPI_ALL_TO_ALL = 24,
  /**
   * All ranks send to the root: root.
   */
  LOGGAP_PATTERN_KIND_MPI_INCAST = 25,
  /**
   * The root sends to all ranks: root, window.
   */
  LOGGAP_PATTERN_KIND_MPI_OUTCAST = 26,
  /**
   * One message from each rank to the next in a random order: seed.
   */
  LOGGAP_PATTERN_KIND_PERMUTATION = 27,
  /**
   * One message from each rank to the one nearly half around the ring.
   */
  LOGGAP_PATTERN_KIND_TORNADO = 28,
  /**
   * Messages between 4 neighbours on the most balanced grid: compute.
   */
  LOGGAP_PATTERN_KIND_HALO2D = 29,
  /**
   * Messages between 6 neighbours on the most balanced grid: compute.
   */
  LOGGAP_PATTERN_KIND_HALO3D = 30,
  /**
   * Messages between 26 neighbours on the most balanced grid: compute.
   */
  LOGGAP_PATTERN_KIND_HALO26 = 31,
  /**
   * From one corner of the most balanced grid to the opposite one: compute.
   */
  LOGGAP_PATTERN_KIND_SWEEP = 32,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_pattern_kind loggap_pattern_kind;
#else
typedef uint32_t loggap_pattern_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Reason of a failure; `loggap_reason_text` explains it. The numbers are the
 * same in all versions of the interface.
 */
enum loggap_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * No reason besides the status.
   */
  LOGGAP_REASON_NONE = 0,
  /**
   * A length is beyond the address space.
   */
  LOGGAP_REASON_ADDRESS_SPACE = 1,
  /**
   * `loggap_clock.now` is null.
   */
  LOGGAP_REASON_NOW_NULL = 2,
  /**
   * `loggap_clock.picos_per_tick_q32` is 0.
   */
  LOGGAP_REASON_TICK_ZERO = 3,
  /**
   * `loggap_link.send` is null.
   */
  LOGGAP_REASON_SEND_NULL = 4,
  /**
   * `loggap_link.poll_receive` is null.
   */
  LOGGAP_REASON_POLL_NULL = 5,
  /**
   * `loggap_link.discard` is null on a link that loses messages.
   */
  LOGGAP_REASON_DISCARD_NULL = 6,
  /**
   * `loggap_link.reliable` is neither 0 nor 1.
   */
  LOGGAP_REASON_RELIABLE_VALUE = 7,
  /**
   * `loggap_link.poll_receive` returned a length beyond the capacity.
   */
  LOGGAP_REASON_POLL_LENGTH = 8,
  /**
   * The link's messages are smaller than a control frame.
   */
  LOGGAP_REASON_SMALL_MESSAGES = 9,
  /**
   * A struct has different sizes in the header and in the library.
   */
  LOGGAP_REASON_STRUCT_SIZE = 10,
  /**
   * The frame ends here.
   */
  LOGGAP_REASON_FRAME_ENDS = 11,
  /**
   * Not the magic bytes of a frame.
   */
  LOGGAP_REASON_FRAME_MAGIC = 12,
  /**
   * The body is longer than a frame.
   */
  LOGGAP_REASON_FRAME_BODY = 13,
  /**
   * The checksum does not match.
   */
  LOGGAP_REASON_CHECKSUM = 14,
  /**
   * The kind of frame is unknown.
   */
  LOGGAP_REASON_FRAME_KIND = 15,
  /**
   * The version is unknown.
   */
  LOGGAP_REASON_VERSION = 16,
  /**
   * A field is out of its range.
   */
  LOGGAP_REASON_FIELD_RANGE = 17,
  /**
   * The Ethernet frame ends here.
   */
  LOGGAP_REASON_ETHERNET_ENDS = 18,
  /**
   * The Ethernet frame is of another protocol.
   */
  LOGGAP_REASON_ETHERNET_FOREIGN = 19,
  /**
   * More bytes in a message than the responder allows.
   */
  LOGGAP_REASON_ALLOWED_MESSAGE = 20,
  /**
   * More messages in a round than the responder allows.
   */
  LOGGAP_REASON_ALLOWED_MESSAGES = 21,
  /**
   * More rounds in a batch than the responder allows.
   */
  LOGGAP_REASON_ALLOWED_ROUNDS = 22,
  /**
   * A longer pause than the responder allows.
   */
  LOGGAP_REASON_ALLOWED_PAUSE = 23,
  /**
   * A longer silence than the responder allows.
   */
  LOGGAP_REASON_ALLOWED_SILENCE = 24,
  /**
   * A longer session than the responder allows.
   */
  LOGGAP_REASON_ALLOWED_SESSION = 25,
  /**
   * Initiator and responder speak different versions.
   */
  LOGGAP_REASON_VERSIONS_DIFFER = 26,
  /**
   * The responder is busy, and other initiators wait.
   */
  LOGGAP_REASON_BUSY = 27,
  /**
   * The responder got a control frame of this kind out of order.
   */
  LOGGAP_REASON_REFUSED_ORDER = 28,
  /**
   * The responder received a message that is not a frame where a frame is expected.
   */
  LOGGAP_REASON_REFUSED_FRAME = 29,
  /**
   * A control frame of this kind is out of order.
   */
  LOGGAP_REASON_FRAME_ORDER = 30,
  /**
   * A message arrived that is not the reply.
   */
  LOGGAP_REASON_NOT_THE_REPLY = 31,
  /**
   * No size has both round trips and bursts: allow more time or messages.
   */
  LOGGAP_REASON_NO_SIZES = 32,
  /**
   * The profile holds an invalid value.
   */
  LOGGAP_REASON_PROFILE_VALUE = 33,
  /**
   * The profile ends here.
   */
  LOGGAP_REASON_PROFILE_ENDS = 34,
  /**
   * The profile does not begin with the letters LGPR.
   */
  LOGGAP_REASON_PROFILE_MAGIC = 35,
  /**
   * More ranges or changes than LOGGAP_MAX_RANGES.
   */
  LOGGAP_REASON_PROFILE_RANGES = 36,
  /**
   * A number is too large, or not in its shortest form.
   */
  LOGGAP_REASON_PROFILE_NUMBER = 37,
  /**
   * Bytes follow the end of the profile.
   */
  LOGGAP_REASON_PROFILE_TRAILING = 38,
  /**
   * A value is not a finite time within 53 days.
   */
  LOGGAP_REASON_POINT_VALUE = 39,
  /**
   * A standard error is not a finite, non-negative time within 53 days.
   */
  LOGGAP_REASON_POINT_SIGMA = 40,
  /**
   * The size of a point is not larger than the one before.
   */
  LOGGAP_REASON_POINT_ORDER = 41,
  /**
   * A line needs values at three or more message sizes.
   */
  LOGGAP_REASON_FEW_POINTS = 42,
  /**
   * The text does not have `name` here.
   */
  LOGGAP_REASON_TEXT_EXPECTED = 43,
  /**
   * A number is too large.
   */
  LOGGAP_REASON_TEXT_NUMBER = 44,
  /**
   * `num_ranks` is 0, missing, or given twice.
   */
  LOGGAP_REASON_TEXT_RANKS = 45,
  /**
   * A rank has no block, two blocks, or a number beyond `num_ranks`.
   */
  LOGGAP_REASON_TEXT_RANK = 46,
  /**
   * A label is defined twice, or is a keyword.
   */
  LOGGAP_REASON_TEXT_LABEL = 47,
  /**
   * A label is not defined above this line in this rank.
   */
  LOGGAP_REASON_TEXT_UNDEFINED = 48,
  /**
   * A comment or a rank's block does not end.
   */
  LOGGAP_REASON_TEXT_UNTERMINATED = 49,
  /**
   * A rank has more operations than 32 bits can count.
   */
  LOGGAP_REASON_TEXT_TOO_LARGE = 50,
  /**
   * The file is cut off.
   */
  LOGGAP_REASON_FILE_ENDS = 51,
  /**
   * The first eight bytes are not those of a binary schedule.
   */
  LOGGAP_REASON_FILE_MAGIC = 52,
  /**
   * The file was consumed by a simulation with --save-mem.
   */
  LOGGAP_REASON_FILE_CONSUMED = 53,
  /**
   * The schedule has no ranks.
   */
  LOGGAP_REASON_FILE_RANKS = 54,
  /**
   * A field contradicts the others.
   */
  LOGGAP_REASON_FILE_FIELD = 55,
  /**
   * The sizes at the head of a rank's block do not add up.
   */
  LOGGAP_REASON_FILE_BLOCK = 56,
  /**
   * An operation has an unknown type, unit or peer.
   */
  LOGGAP_REASON_FILE_OPERATION = 57,
  /**
   * A calculation is longer than 213 days.
   */
  LOGGAP_REASON_FILE_DURATION = 58,
  /**
   * A list or index reaches beyond its rank.
   */
  LOGGAP_REASON_FILE_LIST = 59,
  /**
   * 2^32 - 1 or more operations, 2^31 dependencies, or a tag above 2^32 - 2.
   */
  LOGGAP_REASON_SCHEDULE_LARGE = 60,
  /**
   * Ranks are missing or out of order.
   */
  LOGGAP_REASON_SCHEDULE_ORDER = 61,
  /**
   * A dependency names an operation that the rank does not have.
   */
  LOGGAP_REASON_SCHEDULE_DEPENDENCY = 62,
  /**
   * A message goes to, or comes from, a rank that does not exist.
   */
  LOGGAP_REASON_SCHEDULE_PEER = 63,
  /**
   * An operation is on a processor or interface that was not surveyed.
   */
  LOGGAP_REASON_SCHEDULE_UNIT = 64,
  /**
   * No receive takes the message of this operation.
   */
  LOGGAP_REASON_UNRECEIVED = 65,
  /**
   * No message comes for this receive.
   */
  LOGGAP_REASON_WAITING = 66,
  /**
   * This operation never becomes ready.
   */
  LOGGAP_REASON_NEVER_READY = 67,
  /**
   * More than 2^32 operations become ready at one instant.
   */
  LOGGAP_REASON_AT_ONCE = 68,
  /**
   * Protocols do not ascend by size, or there are none, or more than 16.
   */
  LOGGAP_REASON_PROTOCOLS = 69,
  /**
   * The root is not one of the ranks.
   */
  LOGGAP_REASON_PATTERN_ROOT = 70,
  /**
   * Ranks, groups, repetitions, ways, skew or poll interval are 0.
   */
  LOGGAP_REASON_PATTERN_ZERO = 71,
  /**
   * The skew leaves less than one byte.
   */
  LOGGAP_REASON_PATTERN_SKEW = 72,
  /**
   * 2^32 or more ranks, or operations on one rank.
   */
  LOGGAP_REASON_PATTERN_LARGE = 73,
  /**
   * This algorithm needs a power of two of ranks.
   */
  LOGGAP_REASON_PATTERN_POWER = 74,
  /**
   * The collective has no such algorithm.
   */
  LOGGAP_REASON_PATTERN_ALGORITHM = 75,
  /**
   * A time in nanoseconds was expected, such as 18720.79.
   */
  LOGGAP_REASON_NOISE_NUMBER = 76,
  /**
   * Another word follows start and duration on the line.
   */
  LOGGAP_REASON_NOISE_LINE = 77,
  /**
   * A time is beyond 213 days.
   */
  LOGGAP_REASON_NOISE_TIME = 78,
  /**
   * The trace has no detour.
   */
  LOGGAP_REASON_NOISE_EMPTY = 79,
  /**
   * A detour starts before the previous one ends.
   */
  LOGGAP_REASON_NOISE_OVERLAP = 80,
  /**
   * A detour ends after the end of the trace.
   */
  LOGGAP_REASON_NOISE_END = 81,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_reason loggap_reason;
#else
typedef uint32_t loggap_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Receive mode.
 */
enum loggap_receive_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The processor is busy for all bytes, as in LogGOPSim.
   */
  LOGGAP_RECEIVE_KIND_HOLD = 0,
  /**
   * The interface receives the bytes without the processor, as in LogGOPS.
   */
  LOGGAP_RECEIVE_KIND_OVERLAP = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_receive_kind loggap_receive_kind;
#else
typedef uint32_t loggap_receive_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Rendezvous mode: how messages above the eager limit are sent.
 */
enum loggap_rendezvous_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The sender is released at the instant of the match, as in LogGOPSim.
   */
  LOGGAP_RENDEZVOUS_KIND_INSTANT = 0,
  /**
   * RTS, CTS and data are messages, as in LogGPS.
   */
  LOGGAP_RENDEZVOUS_KIND_HANDSHAKE = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_rendezvous_kind loggap_rendezvous_kind;
#else
typedef uint32_t loggap_rendezvous_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Reason why an assessment ended.
 */
enum loggap_conclusion_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Every interval is narrow enough, or further measuring would not help.
   */
  LOGGAP_CONCLUSION_KIND_CONVERGED = 0,
  /**
   * The time budget is spent.
   */
  LOGGAP_CONCLUSION_KIND_TIME_SPENT = 1,
  /**
   * The message budget is spent.
   */
  LOGGAP_CONCLUSION_KIND_MESSAGES_SPENT = 2,
  /**
   * The memory has no room for the samples still needed.
   */
  LOGGAP_CONCLUSION_KIND_MEMORY_SPENT = 3,
  /**
   * All rounds at the sizes that need samples are lost.
   */
  LOGGAP_CONCLUSION_KIND_ROUNDS_LOST = 4,
  /**
   * The progress callback asked to stop.
   */
  LOGGAP_CONCLUSION_KIND_STOPPED = 5,
  /**
   * The session failed before the plan was finished; the status says why.
   */
  LOGGAP_CONCLUSION_KIND_FAILED = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_conclusion_kind loggap_conclusion_kind;
#else
typedef uint32_t loggap_conclusion_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a session ended.
 */
enum loggap_ending_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The initiator said goodbye.
   */
  LOGGAP_ENDING_KIND_GOODBYE = 0,
  /**
   * The responder refused to continue, and told the initiator.
   */
  LOGGAP_ENDING_KIND_REFUSED = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_ending_kind loggap_ending_kind;
#else
typedef uint32_t loggap_ending_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Kind of a control frame, with the fields that it uses.
 */
enum loggap_frame_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Initiator: opens a session. `versions`, `capabilities`, `bounds`, `nonce`.
   */
  LOGGAP_FRAME_KIND_HELLO = 1,
  /**
   * Responder: accepts the session. `version`, `capabilities`, `bounds`.
   */
  LOGGAP_FRAME_KIND_WELCOME = 2,
  /**
   * Responder: refuses to continue. `refusal`, `limited`, `asked`,
   * `allowed`, `versions`, `responder_versions`.
   */
  LOGGAP_FRAME_KIND_REFUSE = 3,
  /**
   * Responder: other initiators come first. `position`.
   */
  LOGGAP_FRAME_KIND_QUEUE = 4,
  /**
   * Initiator: announces rounds. `sequence`, `rounds`, `round_count`.
   */
  LOGGAP_FRAME_KIND_BATCH = 5,
  /**
   * Responder: waits for the first message of the batch. `sequence`.
   */
  LOGGAP_FRAME_KIND_READY = 6,
  /**
   * Responder: its own timings of a batch. `sequence`, `values_ps`, `round_count`.
   */
  LOGGAP_FRAME_KIND_REPORT = 7,
  /**
   * Initiator: drops the batch under way. `token`.
   */
  LOGGAP_FRAME_KIND_SYNC = 8,
  /**
   * Responder: has dropped the batch. `token`, `received`, `replied`.
   */
  LOGGAP_FRAME_KIND_SYNCED = 9,
  /**
   * Initiator: ends the session.
   */
  LOGGAP_FRAME_KIND_BYE = 10,
  /**
   * Responder: asks for the hello again, with this `nonce`.
   */
  LOGGAP_FRAME_KIND_CHALLENGE = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_frame_kind loggap_frame_kind;
#else
typedef uint32_t loggap_frame_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Measured parameters of a range: bits of `loggap_range.known`.
 * `loggap_known_latency` is also absent if overheads overlap with the latency.
 */
enum loggap_known
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * `half_rtt`.
   */
  LOGGAP_KNOWN_HALF_RTT = 1,
  /**
   * `send_overhead`.
   */
  LOGGAP_KNOWN_SEND_OVERHEAD = 2,
  /**
   * `recv_overhead`.
   */
  LOGGAP_KNOWN_RECV_OVERHEAD = 4,
  /**
   * `latency`.
   */
  LOGGAP_KNOWN_LATENCY = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_known loggap_known;
#else
typedef uint32_t loggap_known;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Quantity that a limit bounds.
 */
enum loggap_limited_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Bytes in a message.
   */
  LOGGAP_LIMITED_KIND_MESSAGE = 0,
  /**
   * Messages in a round.
   */
  LOGGAP_LIMITED_KIND_MESSAGES = 1,
  /**
   * Rounds in a batch.
   */
  LOGGAP_LIMITED_KIND_ROUNDS = 2,
  /**
   * Picoseconds between two receives.
   */
  LOGGAP_LIMITED_KIND_PAUSE = 3,
  /**
   * Picoseconds of silence.
   */
  LOGGAP_LIMITED_KIND_SILENCE = 4,
  /**
   * Picoseconds of the whole session.
   */
  LOGGAP_LIMITED_KIND_SESSION = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_limited_kind loggap_limited_kind;
#else
typedef uint32_t loggap_limited_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Quality of an estimate.
 */
enum loggap_mark_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The interval is as narrow as requested.
   */
  LOGGAP_MARK_KIND_CONVERGED = 0,
  /**
   * Time, messages or memory ran out first: further measuring would help.
   */
  LOGGAP_MARK_KIND_BUDGET_SPENT = 1,
  /**
   * The points do not lie on the model's line: further measuring would not help.
   */
  LOGGAP_MARK_KIND_MISFIT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_mark_kind loggap_mark_kind;
#else
typedef uint32_t loggap_mark_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A parameter of the model.
 */
enum loggap_parameter_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * No parameter.
   */
  LOGGAP_PARAMETER_KIND_NONE = 0,
  /**
   * `PRTT(1,0,s)/2`.
   */
  LOGGAP_PARAMETER_KIND_HALF_RTT = 1,
  /**
   * L.
   */
  LOGGAP_PARAMETER_KIND_LATENCY = 2,
  /**
   * o_s.
   */
  LOGGAP_PARAMETER_KIND_SEND_OVERHEAD = 3,
  /**
   * o_r.
   */
  LOGGAP_PARAMETER_KIND_RECV_OVERHEAD = 4,
  /**
   * g and G.
   */
  LOGGAP_PARAMETER_KIND_GAP = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_parameter_kind loggap_parameter_kind;
#else
typedef uint32_t loggap_parameter_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Reason why a responder refuses to continue.
 */
enum loggap_refusal_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Initiator and responder have no version in common: `versions`,
   * `responder_versions`.
   */
  LOGGAP_REFUSAL_KIND_VERSION = 0,
  /**
   * Another initiator is being served, and `asked` others wait.
   */
  LOGGAP_REFUSAL_KIND_BUSY = 1,
  /**
   * The initiator asks for `asked` units of `limited`; `allowed` are allowed.
   */
  LOGGAP_REFUSAL_KIND_BOUNDS = 2,
  /**
   * A frame of kind `asked` is out of order.
   */
  LOGGAP_REFUSAL_KIND_OUT_OF_ORDER = 3,
  /**
   * A frame was expected, but byte `asked` of the message is wrong.
   */
  LOGGAP_REFUSAL_KIND_MALFORMED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_refusal_kind loggap_refusal_kind;
#else
typedef uint32_t loggap_refusal_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Result of a call. A function returns 0 (`LOGGAP_STATUS_OK`) exactly if it
 * did all that its documentation says.
 */
enum loggap_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Success.
   */
  LOGGAP_STATUS_OK = 0,
  /**
   * A required pointer is null.
   */
  LOGGAP_STATUS_NULL = 1,
  /**
   * A pointer is not aligned for its type, or lent memory not to `LOGGAP_ALIGNMENT`.
   */
  LOGGAP_STATUS_ALIGNMENT = 2,
  /**
   * The lent memory is too small. At least `needed` bytes are necessary, but
   * they may suffice only for the first step (a simulation needs more once
   * it has read its schedule): the function whose name ends in `_bytes`
   * returns a size that suffices for all steps.
   */
  LOGGAP_STATUS_MEMORY = 3,
  /**
   * An output array is too small. It holds the first elements, or nothing if
   * the function says so. `needed` elements suffice.
   */
  LOGGAP_STATUS_FULL = 4,
  /**
   * An option or argument has an invalid value.
   */
  LOGGAP_STATUS_OPTION = 5,
  /**
   * The header belongs to another version of the library.
   */
  LOGGAP_STATUS_VERSION = 6,
  /**
   * The object was not created by its init function, or its memory was overwritten.
   */
  LOGGAP_STATUS_HANDLE = 7,
  /**
   * A callback of the link failed; `found` is the code that it returned.
   */
  LOGGAP_STATUS_LINK = 8,
  /**
   * The peer was silent for longer than the timeout.
   */
  LOGGAP_STATUS_SILENT = 9,
  /**
   * The responder refused.
   */
  LOGGAP_STATUS_REFUSED = 10,
  /**
   * The peer sent a message that violates the protocol.
   */
  LOGGAP_STATUS_PROTOCOL = 11,
  /**
   * A callback asked to stop.
   */
  LOGGAP_STATUS_STOPPED = 12,
  /**
   * A text, file, frame or profile is malformed at byte `at`.
   */
  LOGGAP_STATUS_MALFORMED = 13,
  /**
   * Too few values to compute the result.
   */
  LOGGAP_STATUS_NO_DATA = 14,
  /**
   * The profile does not cover this size.
   */
  LOGGAP_STATUS_OUTSIDE_PROFILE = 15,
  /**
   * The profile lacks a required parameter.
   */
  LOGGAP_STATUS_NOT_MEASURED = 16,
  /**
   * A parameter is negative, or was measured at one size only.
   */
  LOGGAP_STATUS_UNUSABLE = 17,
  /**
   * A time does not fit into 64 bits of picoseconds (213 days).
   */
  LOGGAP_STATUS_OVERFLOW = 18,
  /**
   * A callback of the sink refused an element; `found` is the code that it
   * returned.
   */
  LOGGAP_STATUS_SINK = 19,
  /**
   * The schedule cannot be simulated; see `reason`.
   */
  LOGGAP_STATUS_SCHEDULE = 20,
  /**
   * The simulated program never ends.
   */
  LOGGAP_STATUS_DEADLOCK = 21,
  /**
   * The name is unknown.
   */
  LOGGAP_STATUS_UNKNOWN_NAME = 22,
  /**
   * The self-test gave a wrong answer.
   */
  LOGGAP_STATUS_SELF_TEST = 23,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_status loggap_status;
#else
typedef int32_t loggap_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Kind of a warning about the profile.
 */
enum loggap_warning_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The gap exceeds the round trip at `value` sizes from `size` on:
   * `PRTT(2,0,s)` served as the delay there.
   */
  LOGGAP_WARNING_KIND_DELAY_FALLBACK = 0,
  /**
   * The delay was below the gap at `value` sizes from `size` on, which have
   * no send overhead therefore.
   */
  LOGGAP_WARNING_KIND_DELAY_TOO_SHORT = 1,
  /**
   * `parameter` was clamped in the range from `size` on: its value at size 1
   * or its slope is 0, and would be negative otherwise.
   */
  LOGGAP_WARNING_KIND_BOUND = 2,
  /**
   * From `size` on bursts stall for `value` ps, the length of a timer of
   * delayed acknowledgements.
   */
  LOGGAP_WARNING_KIND_STALL = 3,
  /**
   * Overheads overlap with the latency in the range from `size` on.
   */
  LOGGAP_WARNING_KIND_OVERLAP = 4,
  /**
   * Points of `parameter` deviate by `value` millionths from its line in the
   * range from `size` on, beyond their noise.
   */
  LOGGAP_WARNING_KIND_MISFIT = 5,
  /**
   * The range from `size` on has only `value` sizes.
   */
  LOGGAP_WARNING_KIND_FEW_SIZES = 6,
  /**
   * The protocol changes somewhere between `size` and `value`.
   */
  LOGGAP_WARNING_KIND_CHANGE_NOT_EXACT = 7,
  /**
   * `value` sizes from `size` on were not measured, for lack of time or messages.
   */
  LOGGAP_WARNING_KIND_SIZES_LEFT_OUT = 8,
  /**
   * `parameter` exceeded the round trip, its upper bound, at `value` sizes
   * from `size` on, and was clamped to it.
   */
  LOGGAP_WARNING_KIND_BEYOND_ROUND_TRIP = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_warning_kind loggap_warning_kind;
#else
typedef uint32_t loggap_warning_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Responder without I/O; see `loggap_responder_init`.
 */
typedef struct loggap_responder loggap_responder;

/**
 * A streaming detector of protocol changes, see `loggap_detector_init`.
 */
typedef struct loggap_detector loggap_detector;

/**
 * Progress of an assessment.
 */
typedef struct loggap_progress {
  /**
   * Initiators served before this one; 0 while measuring.
   */
  uint32_t queue_position;
  /**
   * Share of the budget (time or messages) spent, in millionths.
   */
  uint32_t spent_ppm;
  /**
   * Messages sent, replies included.
   */
  uint64_t messages;
  /**
   * Number of lost rounds.
   */
  uint64_t lost;
} loggap_progress;

/**
 * Called after each batch of rounds, and while waiting for a turn. Returns 0
 * to continue. Any other value ends the measurement; the rounds measured until
 * then are assessed.
 */
typedef int32_t (*loggap_progress_function)(void *context,
                                            const struct loggap_progress *progress);

/**
 * Options of an assessment. Start from `loggap_assess_options_default`.
 */
typedef struct loggap_assess_options {
  /**
   * Smallest message size in bytes, at least 1.
   */
  uint32_t smallest;
  /**
   * Largest message size in bytes; the link must be able to carry it.
   */
  uint32_t largest;
  /**
   * Number of sizes in the first sweep, from 2 to `sizes`.
   */
  uint32_t coarse_sizes;
  /**
   * Maximum number of sizes, including those added around protocol changes;
   * at most 65,535.
   */
  uint32_t sizes;
  /**
   * Values kept per quantity and size, from 8 to 65,535.
   */
  uint32_t repetitions;
  /**
   * Maximum number of boundaries between ranges, below `LOGGAP_MAX_RANGES`;
   * 0 treats all sizes as one range.
   */
  uint32_t max_changes;
  /**
   * Messages per burst, at least 2.
   */
  uint32_t messages;
  /**
   * 1 if sizes may be added around protocol changes or dropped when time
   * runs short; 0 to measure exactly the sizes of the first sweep.
   */
  uint32_t adapt_sizes;
  /**
   * Goal of precision: a value has converged when half its interval is at
   * most this many millionths of it.
   */
  uint32_t relative_error_ppm;
  /**
   * Largest residual of a point in millionths of its value before another
   * range begins. Jumps smaller than this do not split a range.
   */
  uint32_t tolerance_ppm;
  /**
   * Level of all confidence intervals in percent, above 0 and below 100.
   */
  double confidence_percent;
  /**
   * Time limit of the measurement, in ps.
   */
  uint64_t max_time_ps;
  /**
   * Time limit on a link so slow that sizes would otherwise be dropped, in
   * ps. No effect unless above `max_time_ps`.
   */
  uint64_t longest_time_ps;
  /**
   * Maximum number of messages, replies included.
   */
  uint64_t max_messages;
  /**
   * Seed of the order of rounds.
   */
  uint64_t seed;
  /**
   * Longest wait for the responder's welcome, in ps.
   */
  uint64_t handshake_ps;
  /**
   * Longest silence of the responder while it serves others, in ps.
   */
  uint64_t queue_ps;
  /**
   * Longest wait for a reply, in ps.
   */
  uint64_t reply_ps;
  /**
   * Shortest timeout of a reply on a link that loses messages, in ps.
   */
  uint64_t shortest_reply_ps;
  /**
   * Progress callback; may be null.
   */
  loggap_progress_function progress;
  /**
   * Passed to `progress`.
   */
  void *progress_context;
} loggap_assess_options;

/**
 * Reads the counter of a clock. It never decreases and never wraps: extend a
 * narrower counter to 64 bits. `context` is the clock's.
 */
typedef uint64_t (*loggap_now_function)(void *context);

/**
 * A clock. The caller fills it in; the library reads it during calls only.
 */
typedef struct loggap_clock {
  /**
   * Passed to `now`.
   */
  void *context;
  /**
   * Reads the counter; not null.
   */
  loggap_now_function now;
  /**
   * Picoseconds per tick, times 2^32; not 0. `LOGGAP_PICOS_PER_TICK_Q32(hz)`
   * for a counter of `hz` ticks per second, below 2^32.
   */
  uint64_t picos_per_tick_q32;
  /**
   * Cost of one call of `now`, in ps; `loggap_clock_calibrate` measures it.
   */
  uint64_t read_cost_ps;
} loggap_clock;

/**
 * Sends one whole message, and returns as soon as its bytes may be reused: the
 * duration of this call is the send overhead. Returns 0, or a code of your own
 * if the peer is gone; the session then ends with this code in
 * `loggap_detail.found`.
 */
typedef int32_t (*loggap_send_function)(void *context, const uint8_t *message, size_t length);

/**
 * Polls once for a message, without waiting or for a bounded time. Returns 0
 * if none is complete; 1 if one is, with its bytes at the front of `buffer`
 * and their number, at most `capacity`, in `length`; a negative code of your
 * own if the peer is gone, which ends the session.
 *
 * A byte stream collects exactly `capacity` bytes, in the same buffer across
 * calls. A datagram link never merges two messages, and drops messages longer
 * than `capacity` as if they had not arrived (0): no peer of loggap sends
 * them, but a stranger may.
 */
typedef int32_t (*loggap_poll_function)(void *context,
                                        uint8_t *buffer,
                                        size_t capacity,
                                        size_t *length);

/**
 * Drops a partly received message and everything else that has arrived.
 * Returns 0, or a code of your own if the peer is gone.
 */
typedef int32_t (*loggap_discard_function)(void *context);

/**
 * A connection that carries messages both ways. The caller fills it in; the
 * library reads it during calls only, and calls the functions on the thread
 * that called the library. They must return normally.
 */
typedef struct loggap_link {
  /**
   * Passed to all functions.
   */
  void *context;
  /**
   * Sends a message; not null.
   */
  loggap_send_function send;
  /**
   * Polls for a message; not null.
   */
  loggap_poll_function poll_receive;
  /**
   * Drops what has arrived; may be null if the link is reliable.
   */
  loggap_discard_function discard;
  /**
   * Largest message that one `send` accepts, in bytes; at least `LOGGAP_FRAME_BYTES`.
   */
  uint64_t max_message;
  /**
   * 1 if every message arrives, in order; 0 if some may be lost.
   */
  uint32_t reliable;
} loggap_link;

/**
 * An estimate and its confidence interval.
 */
typedef struct loggap_estimate {
  /**
   * Estimated value.
   */
  int64_t value;
  /**
   * Lower end of the interval.
   */
  int64_t low;
  /**
   * Upper end of the interval.
   */
  int64_t high;
  /**
   * A `loggap_mark_kind`.
   */
  uint32_t mark;
} loggap_estimate;

/**
 * A parameter that depends on the message size s:
 * `at_one + (s - 1) * per_byte`.
 */
typedef struct loggap_line {
  /**
   * Value at size 1, in ps: an extrapolation if the range begins later, and
   * 0 if the line is negative there.
   */
  struct loggap_estimate at_one;
  /**
   * Slope, in 2^-16 ps per byte. If only one size was measured, the interval
   * is from `INT64_MIN` to `INT64_MAX`.
   */
  struct loggap_estimate per_byte;
  /**
   * Size at which the line's interval is narrowest.
   */
  uint64_t centre;
  /**
   * Value of the line at `centre`, in ps. The value at a size s is
   * `at_centre_ps + (s - centre) * per_byte`.
   */
  int64_t at_centre_ps;
  /**
   * Half-width of the interval of `at_centre_ps`, in ps.
   */
  uint64_t centre_half_width_ps;
  /**
   * Expected deviation of a later round from the line beyond the line's
   * interval, in millionths of its value: scatter of rounds, and misfit of
   * the model.
   */
  uint32_t scatter_ppm;
} loggap_line;

/**
 * Parameters of one protocol, for sizes from `first` to `last`.
 */
typedef struct loggap_range {
  /**
   * Smallest size of the range, in bytes.
   */
  uint64_t first;
  /**
   * Largest size of the range that was measured, in bytes.
   */
  uint64_t last;
  /**
   * Measured parameters besides `gap`: bits of `loggap_known`.
   */
  uint32_t known;
  /**
   * g and G: minimum time between two messages.
   */
  struct loggap_line gap;
  /**
   * Half the round trip, `PRTT(1,0,s)/2`.
   */
  struct loggap_line half_rtt;
  /**
   * o_s: time that the sender spends on a message.
   */
  struct loggap_line send_overhead;
  /**
   * o_r: time that the receiver spends on a message.
   */
  struct loggap_line recv_overhead;
  /**
   * L, in ps: `PRTT(1,0,1)/2 - o_s - o_r`.
   */
  struct loggap_estimate latency;
} loggap_range;

/**
 * Protocol change: a size at which a curve jumps.
 */
typedef struct loggap_change {
  /**
   * First size of the new protocol.
   */
  uint64_t at;
  /**
   * Smallest size at which the new protocol may begin.
   */
  uint64_t low;
  /**
   * Largest size at which the new protocol may begin.
   */
  uint64_t high;
  /**
   * Curve that shows the change best: a `loggap_parameter_kind`.
   */
  uint32_t parameter;
  /**
   * Height of the jump in millionths of the curve's value before it;
   * negative if the new protocol is faster.
   */
  int32_t jump_ppm;
  /**
   * 1 if a range begins here; 0 if the jump is significant but smaller than
   * the tolerance, or too close to another one.
   */
  uint32_t splits;
} loggap_change;

/**
 * Parameters of a link: contiguous ranges of sizes in ascending order, each
 * described by one line per parameter, and the protocol changes. A range that
 * begins without a change begins where the curves bend.
 */
typedef struct loggap_profile {
  /**
   * Number of elements of `ranges` in use.
   */
  uint32_t range_count;
  /**
   * Number of elements of `changes` in use.
   */
  uint32_t change_count;
  /**
   * Ranges, by ascending size.
   */
  struct loggap_range ranges[LOGGAP_MAX_RANGES];
  /**
   * Protocol changes, by ascending size.
   */
  struct loggap_change changes[LOGGAP_MAX_RANGES];
} loggap_profile;

/**
 * A warning.
 */
typedef struct loggap_warning {
  /**
   * A `loggap_warning_kind`.
   */
  uint32_t kind;
  /**
   * A `loggap_parameter_kind`.
   */
  uint32_t parameter;
  /**
   * A message size in bytes.
   */
  uint64_t size;
  /**
   * See `loggap_warning_kind`.
   */
  uint64_t value;
} loggap_warning;

/**
 * Report of an assessment.
 */
typedef struct loggap_assess_report {
  /**
   * A `loggap_conclusion_kind`.
   */
  uint32_t conclusion;
  /**
   * 1 if every parameter of the profile has converged.
   */
  uint32_t converged;
  /**
   * Data messages sent.
   */
  uint64_t data_sent;
  /**
   * Data messages received.
   */
  uint64_t data_received;
  /**
   * Control frames in both directions.
   */
  uint64_t control;
  /**
   * Completed rounds.
   */
  uint64_t rounds;
  /**
   * Rounds discarded because a message was lost or late.
   */
  uint64_t rounds_lost;
  /**
   * Data messages lost or late in either direction.
   */
  uint64_t messages_lost;
  /**
   * Time from the first round to the last, in ps.
   */
  uint64_t wall_ps;
  /**
   * Number of elements of `warnings` in use.
   */
  uint32_t warning_count;
  /**
   * Number of warnings that did not fit.
   */
  uint32_t further_warnings;
  /**
   * Warnings about the profile.
   */
  struct loggap_warning warnings[LOGGAP_MAX_WARNINGS];
} loggap_assess_report;

/**
 * Location and reason of a failure. A function that takes one fills it in:
 * after success with `LOGGAP_STATUS_OK` only. Fields that do not apply to a
 * failure are 0, or `UINT32_MAX` for ranks and operations.
 */
typedef struct loggap_detail {
  /**
   * The status that the function returned, a `loggap_status`.
   */
  int32_t status;
  /**
   * The rank concerned, or `UINT32_MAX`.
   */
  uint32_t rank;
  /**
   * The operation concerned, by its index on the rank, or `UINT32_MAX`.
   */
  uint32_t op;
  /**
   * Line of a text, from 1; 0 if there is no line.
   */
  uint32_t line;
  /**
   * Byte within the line, from 1; 0 if there is no line.
   */
  uint32_t column;
  /**
   * Offset of the wrong byte, index of the wrong element, or message size concerned.
   */
  uint64_t at;
  /**
   * Amount that would suffice, or the value expected.
   */
  uint64_t needed;
  /**
   * Value found instead, or the code that a callback returned.
   */
  uint64_t found;
  /**
   * A `loggap_reason`; `loggap_reason_text` explains it.
   */
  uint32_t reason;
  /**
   * Name of the wrong field, without a terminating zero byte; null if no
   * field is concerned.
   */
  const char *name;
  /**
   * Length of `name` in bytes.
   */
  size_t name_length;
} loggap_detail;

/**
 * Settings of a streaming detector. Start from `loggap_detector_options_default`.
 */
typedef struct loggap_detector_options {
  /**
   * Threshold: root mean square distance of the points ahead from the line,
   * as a multiple of that of the current protocol's points; 2 as in the
   * paper.
   */
  double factor;
  /**
   * Resolution of the values in ps; smaller deviations are insignificant.
   */
  double resolution_ps;
  /**
   * Points to look ahead, 3 to 8.
   */
  uint32_t points;
} loggap_detector_options;

/**
 * A value measured at one message size.
 */
typedef struct loggap_fit_point {
  /**
   * Message size in bytes.
   */
  uint64_t size;
  /**
   * Value in ps: finite and within 2^62.
   */
  double value_ps;
  /**
   * Standard error of the value in ps, 0 if unknown.
   */
  double sigma_ps;
} loggap_fit_point;

/**
 * A change that a streaming detector found.
 */
typedef struct loggap_detected_change {
  /**
   * 1 if a change was found; otherwise all other fields are 0.
   */
  uint32_t found;
  /**
   * Index of the first point of the new protocol, counted from the first
   * point pushed.
   */
  uint64_t index;
  /**
   * Last size of the old protocol. The change lies above it.
   */
  uint64_t before;
  /**
   * Upper bound of the first size of the new protocol.
   */
  uint64_t at;
  /**
   * g of the old protocol in ps; 0 if unknown.
   */
  double gap_ps;
  /**
   * G of the old protocol in ps per byte; 0 if unknown.
   */
  double gap_per_byte_ps;
} loggap_detected_change;

/**
 * Options of a fit. Start from `loggap_fit_options_default`.
 */
typedef struct loggap_fit_options {
  /**
   * Level of the intervals in percent, above 0 and below 100.
   */
  double confidence_percent;
  /**
   * Largest residual of a point within a range, relative to its value. A
   * jump smaller than this does not split a range.
   */
  double tolerance;
  /**
   * Resolution of the values in ps: possible error of a value without noise.
   */
  double resolution_ps;
  /**
   * Maximum number of boundaries between segments, at most 15; 0 looks for no changes.
   */
  uint32_t max_changes;
} loggap_fit_options;

/**
 * A fitted parameter with its confidence interval.
 */
typedef struct loggap_fit_estimate {
  /**
   * Estimate.
   */
  double value;
  /**
   * Lower end of the interval.
   */
  double low;
  /**
   * Upper end of the interval.
   */
  double high;
} loggap_fit_estimate;

/**
 * A range and its fitted line.
 */
typedef struct loggap_fit_segment {
  /**
   * Index of the first point.
   */
  uint64_t first;
  /**
   * Index of the last point, included.
   */
  uint64_t last;
  /**
   * Size of the first point: the largest size at which the range may begin.
   */
  uint64_t first_size;
  /**
   * Size of the last point.
   */
  uint64_t last_size;
  /**
   * Smallest size at which the range may begin.
   */
  uint64_t begins_low;
  /**
   * Number of points that the line was fitted to.
   */
  uint64_t points;
  /**
   * Number of points of the range that were left out as outliers.
   */
  uint64_t outliers;
  /**
   * g: value of the line at one byte, in ps; never negative.
   */
  struct loggap_fit_estimate gap_ps;
  /**
   * G: ps per byte; never negative.
   */
  struct loggap_fit_estimate gap_per_byte_ps;
  /**
   * Largest residual of a point, relative to its value.
   */
  double largest_deviation;
  /**
   * Jump of the value where a protocol change begins the range, in
   * millionths; 0 if the curve only bends or no change begins it.
   */
  int32_t jump_ppm;
  /**
   * Parameters clamped to 0 because they would be negative: 1 for g, 2 for
   * G, 3 for both, 0 for none.
   */
  uint32_t bound;
} loggap_fit_segment;

/**
 * Limits that a responder enforces.
 */
typedef struct loggap_bounds {
  /**
   * Largest message and largest reply, in bytes.
   */
  uint32_t message;
  /**
   * Maximum number of messages per round.
   */
  uint32_t messages;
  /**
   * Maximum number of rounds per batch, repetitions included.
   */
  uint32_t rounds;
  /**
   * Longest pause between two receives that an initiator may request, in ps.
   */
  uint64_t pause_ps;
  /**
   * Longest silence of the initiator, in ps.
   */
  uint64_t silence_ps;
  /**
   * Longest session, in ps.
   */
  uint64_t session_ps;
} loggap_bounds;

/**
 * A round, and how often it is repeated.
 */
typedef struct loggap_round {
  /**
   * Messages from the initiator, at least 1.
   */
  uint32_t messages;
  /**
   * Bytes in each of them, at least 1.
   */
  uint32_t size;
  /**
   * Bytes in each reply, at least 1.
   */
  uint32_t reply_size;
  /**
   * Number of times that the round is run, 1 to 65,535.
   */
  uint32_t repeats;
  /**
   * 0: one reply after the last message; 1: one after each.
   */
  uint32_t reply_each;
  /**
   * 1 if the responder times its receive calls; only if `repeats` is 1.
   */
  uint32_t timed;
  /**
   * Time that the responder waits before polling for each message but the
   * first, in ps.
   */
  uint64_t pause_ps;
} loggap_round;

/**
 * A control frame. Each `loggap_frame_kind` lists the fields that it uses; the
 * others are 0 and ignored.
 */
typedef struct loggap_frame {
  /**
   * A `loggap_frame_kind`.
   */
  uint32_t kind;
  /**
   * Sequence number of the batch's first round.
   */
  uint32_t sequence;
  /**
   * Number that identifies a synchronisation.
   */
  uint32_t token;
  /**
   * Number of initiators before this one.
   */
  uint32_t position;
  /**
   * Lowest and highest version that the initiator speaks.
   */
  uint32_t versions[2];
  /**
   * Lowest and highest version that the responder speaks.
   */
  uint32_t responder_versions[2];
  /**
   * Version that both speak.
   */
  uint32_t version;
  /**
   * Capability bits. Bit 0: the sender can request, or provide, a
   * description of the responder, with frames of kinds that are not listed
   * here.
   */
  uint32_t capabilities;
  /**
   * Limits that the initiator requests, or the responder enforces.
   */
  struct loggap_bounds bounds;
  /**
   * A `loggap_refusal_kind`.
   */
  uint32_t refusal;
  /**
   * A `loggap_limited_kind`.
   */
  uint32_t limited;
  /**
   * Value asked for; see `loggap_refusal_kind`.
   */
  uint64_t asked;
  /**
   * Value allowed; see `loggap_refusal_kind`.
   */
  uint64_t allowed;
  /**
   * Number of data messages that the responder has received.
   */
  uint64_t received;
  /**
   * Number of data messages that the responder has sent.
   */
  uint64_t replied;
  /**
   * Nonce of a challenge; 0 if there was none.
   */
  uint64_t nonce;
  /**
   * Number of elements of `rounds` or `values_ps` in use, 1 to `LOGGAP_FRAME_ROUNDS`.
   */
  uint32_t round_count;
  /**
   * Rounds of a batch.
   */
  struct loggap_round rounds[LOGGAP_FRAME_ROUNDS];
  /**
   * Time in the receive calls of each round, in ps; 0 if not timed.
   */
  uint64_t values_ps[LOGGAP_FRAME_ROUNDS];
} loggap_frame;

/**
 * Survey of a schedule.
 */
typedef struct loggap_goal_info {
  /**
   * A `loggap_format_kind`.
   */
  uint32_t format;
  /**
   * Number of ranks.
   */
  uint32_t ranks;
  /**
   * Number of operations, over all ranks.
   */
  uint64_t ops;
  /**
   * Number of dependencies, over all ranks.
   */
  uint64_t edges;
  /**
   * Largest number of dependencies of a rank.
   */
  uint64_t edges_most;
  /**
   * Bytes of memory that `loggap_goal_read` needs; may be 0.
   */
  size_t read_bytes;
} loggap_goal_info;

/**
 * One operation of a rank.
 */
typedef struct loggap_operation {
  /**
   * A `loggap_operation_kind`.
   */
  uint32_t kind;
  /**
   * The other rank; `UINT32_MAX` for any source, 0 for a calculation.
   */
  uint32_t peer;
  /**
   * Tag of the message; `UINT64_MAX` for any tag, 0 for a calculation.
   */
  uint64_t tag;
  /**
   * Processor of the rank that the operation occupies.
   */
  uint32_t cpu;
  /**
   * Network interface of the rank that the operation occupies.
   */
  uint32_t nic;
  /**
   * Bytes of a message, or picoseconds of a calculation.
   */
  uint64_t amount;
} loggap_operation;

/**
 * Callbacks that receive a schedule. Each may be null, and returns 0 to
 * continue or a code of your own to reject the element: reading then ends with
 * `LOGGAP_STATUS_SINK`, the rank, and the operation of the rejected call,
 * `UINT32_MAX` if it had none. Ranks come in ascending order.
 */
typedef struct loggap_sink {
  /**
   * Passed to all functions.
   */
  void *context;
  /**
   * Receives the number of ranks; called first.
   */
  int32_t (*ranks)(void *context, uint32_t ranks);
  /**
   * Opens a rank.
   */
  int32_t (*begin_rank)(void *context, uint32_t rank);
  /**
   * Receives the next operation of the open rank; `index` counts from 0.
   */
  int32_t (*op)(void *context, uint32_t index, const struct loggap_operation *op);
  /**
   * Operation `op` of the open rank waits until `on` has completed, or, if
   * `start` is 1, until `on` has started.
   */
  int32_t (*requires)(void *context, uint32_t op, uint32_t on, uint32_t start);
  /**
   * Closes the open rank.
   */
  int32_t (*end_rank)(void *context);
} loggap_sink;

/**
 * Detour: an interval that the operating system took from a program.
 */
typedef struct loggap_detour {
  /**
   * Start, in ps from the start of the trace.
   */
  uint64_t start_ps;
  /**
   * Duration, in ps.
   */
  uint64_t duration_ps;
} loggap_detour;

/**
 * Options of a pattern; those that it does not use are ignored. Start from
 * `loggap_pattern_options_default`.
 */
typedef struct loggap_pattern_options {
  /**
   * Ranks per group.
   */
  uint32_t ranks;
  /**
   * Root rank.
   */
  uint32_t root;
  /**
   * Message size of the collective, in bytes.
   */
  uint64_t size;
  /**
   * Segment size in bytes; 0 for the whole message.
   */
  uint64_t segment;
  /**
   * Maximum number of sends in flight; 0 for no limit.
   */
  uint32_t window;
  /**
   * Targets of a rank per round.
   */
  uint32_t ways;
  /**
   * Calculation between the rounds, in ps; 0 for none.
   */
  uint64_t compute_ps;
  /**
   * Divisor of the size of the small messages.
   */
  uint32_t skew;
  /**
   * 1 if the rank above the root sends large messages only.
   */
  uint32_t outcast;
  /**
   * A `loggap_algorithm_kind`.
   */
  uint32_t algorithm;
  /**
   * Disjoint groups of ranks, each of which runs the pattern.
   */
  uint32_t groups;
  /**
   * Repetitions, one after the other on each rank.
   */
  uint32_t repeat;
  /**
   * 1 if each repetition moves the root to the next rank.
   */
  uint32_t rotate_root;
  /**
   * Seed of random patterns.
   */
  uint64_t seed;
  /**
   * Calculation that runs beside the pattern on every rank, in ps; 0 for none.
   */
  uint64_t background_ps;
  /**
   * Length of the pieces into which that calculation is cut, in ps; 0 for one piece.
   */
  uint64_t background_poll_ps;
  /**
   * Processor that runs that calculation, 0 to 255.
   */
  uint32_t background_cpu;
} loggap_pattern_options;

/**
 * Parameter set of the LogGOPS model.
 */
typedef struct loggap_loggops {
  /**
   * L: latency of the wire, in ps.
   */
  uint64_t latency_ps;
  /**
   * o: time that an end spends on a message of one byte, in ps.
   */
  uint64_t overhead_ps;
  /**
   * g: minimum time between two messages of one byte, in ps.
   */
  uint64_t gap_ps;
  /**
   * G: time of each further byte on the wire, in 2^-16 ps.
   */
  uint64_t gap_per_byte_q16;
  /**
   * O: time of each further byte at an end, in 2^-16 ps.
   */
  uint64_t overhead_per_byte_q16;
  /**
   * S: largest eager message, in bytes; larger ones wait for their receiver.
   */
  uint64_t eager_limit;
} loggap_loggops;

/**
 * A predicted time, with the interval in which a measurement is expected.
 */
typedef struct loggap_prediction {
  /**
   * Predicted value, in ps.
   */
  uint64_t value_ps;
  /**
   * Lower end of the interval, in ps.
   */
  uint64_t low_ps;
  /**
   * Upper end of the interval, in ps.
   */
  uint64_t high_ps;
} loggap_prediction;

/**
 * Counts of one session.
 */
typedef struct loggap_served {
  /**
   * A `loggap_ending_kind`.
   */
  uint32_t ending;
  /**
   * Data messages received, stray ones included.
   */
  uint64_t received;
  /**
   * Data messages sent.
   */
  uint64_t replied;
  /**
   * Completed rounds.
   */
  uint64_t rounds;
  /**
   * Messages that belonged to no current round.
   */
  uint64_t strays;
} loggap_served;

/**
 * Action that the responder asks for.
 */
typedef struct loggap_responder_action {
  /**
   * A `loggap_action_kind`.
   */
  uint32_t kind;
  /**
   * A `loggap_ending_kind` at the end, otherwise 0.
   */
  uint32_t ending;
  /**
   * Message to send: within the responder's memory, valid until the next call on it.
   */
  const uint8_t *message;
  /**
   * Length of `message` in bytes; 0 if there is nothing to send.
   */
  size_t length;
} loggap_responder_action;

/**
 * How to receive the next message.
 */
typedef struct loggap_responder_next_message {
  /**
   * Length in bytes, for reading from a stream.
   */
  size_t length;
  /**
   * 1 if the receive call has to be timed: pass its duration to
   * `loggap_responder_timed` before the message is handled.
   */
  uint32_t timed;
  /**
   * Time to wait before polling for the message, in ps.
   */
  uint64_t pause_ps;
  /**
   * Timeout before `loggap_responder_silence`, in ps.
   */
  uint64_t silence_ps;
} loggap_responder_next_message;

/**
 * Receives each check of the self-test. `name` has `length` bytes and no
 * terminating zero byte; `passed` is 1 or 0. `computed` is 0 if nothing was
 * computed.
 */
typedef void (*loggap_check_function)(void *context,
                                      const char *name,
                                      size_t length,
                                      uint32_t passed,
                                      uint64_t computed,
                                      uint64_t answer);

/**
 * Numbers of passed and failed checks.
 */
typedef struct loggap_selftest_count {
  /**
   * Checks with the right answer.
   */
  uint32_t passed;
  /**
   * All other checks.
   */
  uint32_t failed;
} loggap_selftest_count;

/**
 * Options of a simulation. All zeros select the rules of LogGOPSim without noise.
 */
typedef struct loggap_simulate_options {
  /**
   * A `loggap_receive_kind`.
   */
  uint32_t receive;
  /**
   * A `loggap_rendezvous_kind`.
   */
  uint32_t rendezvous;
  /**
   * Detours that take time from operations; null for none.
   */
  const struct loggap_detour *detours;
  /**
   * Number of elements of `detours`.
   */
  size_t detour_count;
  /**
   * Period with which the detours repeat, in ps; 0 for the end of the last one.
   */
  uint64_t noise_length_ps;
  /**
   * Seed of each rank's starting position in the trace.
   */
  uint64_t noise_seed;
  /**
   * 1 if all ranks start at the same position.
   */
  uint32_t noise_together;
  /**
   * Seed of the labels of a schedule's text; see `loggap_goal_read`.
   */
  uint64_t label_seed;
} loggap_simulate_options;

/**
 * Parameters of one protocol: for messages of at least `first` bytes, up to
 * the next protocol's.
 */
typedef struct loggap_protocol {
  /**
   * First size that uses it; the first protocol covers smaller sizes, too.
   */
  uint64_t first;
  /**
   * Parameters of its messages.
   */
  struct loggap_loggops parameters;
} loggap_protocol;

/**
 * Result of a simulation.
 */
typedef struct loggap_simulated {
  /**
   * Finishing time of the last rank, in ps.
   */
  uint64_t makespan_ps;
  /**
   * Number of simulated operations and messages.
   */
  uint64_t events;
  /**
   * Number of operations in the schedule.
   */
  uint64_t ops;
  /**
   * Number of ranks.
   */
  uint32_t ranks;
  /**
   * Rank that finished last; the lowest of several.
   */
  uint32_t last_rank;
} loggap_simulated;

/**
 * Sizes of the structs in the caller's compilation, in bytes.
 */
typedef struct loggap_sizes {
  /**
   * `sizeof(loggap_detail)`.
   */
  uint32_t detail;
  /**
   * `sizeof(loggap_clock)`.
   */
  uint32_t clock;
  /**
   * `sizeof(loggap_link)`.
   */
  uint32_t link;
  /**
   * `sizeof(loggap_bounds)`.
   */
  uint32_t bounds;
  /**
   * `sizeof(loggap_frame)`.
   */
  uint32_t frame;
  /**
   * `sizeof(loggap_served)`.
   */
  uint32_t served;
  /**
   * `sizeof(loggap_responder_action)`.
   */
  uint32_t responder_action;
  /**
   * `sizeof(loggap_responder_next_message)`.
   */
  uint32_t responder_next;
  /**
   * `sizeof(loggap_progress)`.
   */
  uint32_t progress;
  /**
   * `sizeof(loggap_assess_options)`.
   */
  uint32_t assess_options;
  /**
   * `sizeof(loggap_assess_report)`.
   */
  uint32_t assess_report;
  /**
   * `sizeof(loggap_profile)`.
   */
  uint32_t profile;
  /**
   * `sizeof(loggap_fit_point)`.
   */
  uint32_t fit_point;
  /**
   * `sizeof(loggap_fit_options)`.
   */
  uint32_t fit_options;
  /**
   * `sizeof(loggap_fit_segment)`.
   */
  uint32_t fit_segment;
  /**
   * `sizeof(loggap_detector_options)`.
   */
  uint32_t detector_options;
  /**
   * `sizeof(loggap_detected_change)`.
   */
  uint32_t detected_change;
  /**
   * `sizeof(loggap_prediction)`.
   */
  uint32_t prediction;
  /**
   * `sizeof(loggap_protocol)`.
   */
  uint32_t protocol;
  /**
   * `sizeof(loggap_simulate_options)`.
   */
  uint32_t simulate_options;
  /**
   * `sizeof(loggap_simulated)`.
   */
  uint32_t simulated;
  /**
   * `sizeof(loggap_pattern_options)`.
   */
  uint32_t pattern_options;
  /**
   * `sizeof(loggap_goal_info)`.
   */
  uint32_t goal_info;
  /**
   * `sizeof(loggap_operation)`.
   */
  uint32_t operation;
  /**
   * `sizeof(loggap_sink)`.
   */
  uint32_t sink;
  /**
   * `sizeof(loggap_detour)`.
   */
  uint32_t detour;
  /**
   * `sizeof(loggap_selftest_count)`.
   */
  uint32_t selftest_count;
} loggap_sizes;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Fills in the defaults: sizes from 1 to 1024 bytes, 8 of them and 4 more
 * around protocol changes, at most 3 ranges, 12 values per size, bursts of 10,
 * 5 percent at 95 percent confidence, a tolerance of 6 percent, at most 2.5 s
 * and 34,000 messages. They suit a small memory; a host uses more sizes,
 * values and changes.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_assess_options_default(struct loggap_assess_options *options);

/**
 * Bytes of memory that `loggap_assess` needs with these options; 0 if they are
 * invalid. `LOGGAP_ASSESS_BYTES` is an upper bound of it as a constant
 * expression.
 */
size_t loggap_assess_bytes(const struct loggap_assess_options *options);

/**
 * Assesses a link: opens a session with the responder at its other end, plans
 * and times rounds until every parameter has converged or the budget is spent,
 * detects protocol changes and fits the parameters. Blocks, and keeps no
 * pointer to lent memory. Takes about 7 KiB of stack on a Cortex-M4F. `report`
 * may be null.
 *
 * Errors: `LOGGAP_STATUS_OPTION` with the name of the option,
 * `LOGGAP_STATUS_MEMORY` (see `loggap_assess_bytes`), `LOGGAP_STATUS_LINK`,
 * `LOGGAP_STATUS_SILENT`, `LOGGAP_STATUS_REFUSED`, `LOGGAP_STATUS_PROTOCOL`,
 * `LOGGAP_STATUS_STOPPED` (while waiting for a turn), `LOGGAP_STATUS_NO_DATA`,
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 * If the session fails after rounds have been measured (`LINK`, `SILENT`,
 * `REFUSED`, `PROTOCOL`), `profile` and `report` hold the results of those
 * rounds: the conclusion is `LOGGAP_CONCLUSION_KIND_FAILED`, and `converged`
 * is 0. After any other failure `report` holds the counts as far as they are
 * known. `profile` then has no ranges if measuring had begun, because messages
 * of up to half its size are buffered in it meanwhile.
 */
int32_t loggap_assess(const struct loggap_clock *clock,
                      const struct loggap_link *link,
                      const struct loggap_assess_options *options,
                      uint8_t *memory,
                      size_t bytes,
                      struct loggap_profile *profile,
                      struct loggap_assess_report *report,
                      struct loggap_detail *detail);

/**
 * As `loggap_assess`, but detects protocol changes in one pass that looks
 * three points ahead, as the paper does: less code and far less work than the
 * optimal search, but less sensitive.
 */
int32_t loggap_assess_look_ahead(const struct loggap_clock *clock,
                                 const struct loggap_link *link,
                                 const struct loggap_assess_options *options,
                                 uint8_t *memory,
                                 size_t bytes,
                                 struct loggap_profile *profile,
                                 struct loggap_assess_report *report,
                                 struct loggap_detail *detail);

/**
 * Writes `profile` in its compact, versioned and checksummed encoding to
 * `bytes`, and its length to `length`. The encoding is the same on all
 * machines; the tables of docs/formats.md describe it.
 *
 * Errors: `LOGGAP_STATUS_FULL` (`LOGGAP_PROFILE_BYTES` always suffice;
 * `needed` is an upper bound for this profile), `LOGGAP_STATUS_OPTION` for an
 * invalid profile, `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_profile_encode(const struct loggap_profile *profile,
                              uint8_t *bytes,
                              size_t capacity,
                              size_t *length,
                              struct loggap_detail *detail);

/**
 * Decodes a profile that fills `length` bytes.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` with the offset in `at` and the reason;
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`. On error `profile` has no
 * ranges.
 */
int32_t loggap_profile_decode(const uint8_t *bytes,
                              size_t length,
                              struct loggap_profile *profile,
                              struct loggap_detail *detail);

/**
 * Bytes of memory that `loggap_detector_init` needs.
 */
size_t loggap_detector_bytes(void);

/**
 * Fills in the defaults: factor 2, three points ahead, a resolution of 1 ps.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_detector_options_default(struct loggap_detector_options *options);

/**
 * Creates a detector in `memory`, which stays lent while the detector is in use.
 *
 * Errors: `LOGGAP_STATUS_OPTION`, `LOGGAP_STATUS_MEMORY`,
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_detector_init(struct loggap_detector **detector,
                             const struct loggap_detector_options *options,
                             uint8_t *memory,
                             size_t bytes,
                             struct loggap_detail *detail);

/**
 * Pushes the next point of a sweep, larger than the one before. A change is
 * reported once enough points after it confirm its position.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` for an invalid point (the detector is
 * unchanged), `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_detector_push(struct loggap_detector *detector,
                             const struct loggap_fit_point *point,
                             struct loggap_detected_change *change,
                             struct loggap_detail *detail);

/**
 * Ends the sweep, and reports a change that was still waiting for further points.
 *
 * Errors: `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_detector_finish(struct loggap_detector *detector,
                               struct loggap_detected_change *change,
                               struct loggap_detail *detail);

/**
 * Fills in the defaults: 95 percent, a tolerance of 6 percent, a resolution of
 * 1 ps, up to 7 changes.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_fit_options_default(struct loggap_fit_options *options);

/**
 * Bytes of memory that `loggap_fit` needs for `points` points.
 * `LOGGAP_FIT_BYTES` is an upper bound of it as a constant expression.
 */
size_t loggap_fit_bytes(size_t points);

/**
 * Fits a line to each range of a sweep of at least three `points` with
 * strictly ascending sizes. Ranges are split at protocol changes, and where a
 * residual would exceed the tolerance. Writes the segments by ascending size
 * to `segments` and their number to `count`.
 *
 * Errors: `LOGGAP_STATUS_NO_DATA` below three points;
 * `LOGGAP_STATUS_MALFORMED` if the point `at` is invalid or its size does not
 * ascend; `LOGGAP_STATUS_FULL` if there are more than `capacity` segments: the
 * first ones have been written, and `count` is the number of all;
 * `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_OPTION`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_fit(const struct loggap_fit_point *points,
                   size_t point_count,
                   const struct loggap_fit_options *options,
                   uint8_t *memory,
                   size_t bytes,
                   struct loggap_fit_segment *segments,
                   size_t capacity,
                   size_t *count,
                   struct loggap_detail *detail);

/**
 * As `loggap_fit`, but detects changes in one pass that looks three points
 * ahead, as the paper does: less code and less work, but less sensitive.
 */
int32_t loggap_fit_look_ahead(const struct loggap_fit_point *points,
                              size_t point_count,
                              const struct loggap_fit_options *options,
                              uint8_t *memory,
                              size_t bytes,
                              struct loggap_fit_segment *segments,
                              size_t capacity,
                              size_t *count,
                              struct loggap_detail *detail);

/**
 * Parses the control frame at the front of `length` bytes; ignores what follows it.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` with the offset of the wrong byte in `at`,
 * the reason, and the value found; `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`. On error `frame` is unchanged.
 */
int32_t loggap_frame_parse(const uint8_t *bytes,
                           size_t length,
                           struct loggap_frame *frame,
                           struct loggap_detail *detail);

/**
 * Writes `frame` into the first `LOGGAP_FRAME_BYTES` of `bytes`.
 *
 * Errors: `LOGGAP_STATUS_FULL` if `capacity` is less; `LOGGAP_STATUS_OPTION`
 * with the name of a field whose value a frame cannot carry;
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_frame_emit(const struct loggap_frame *frame,
                          uint8_t *bytes,
                          size_t capacity,
                          struct loggap_detail *detail);

/**
 * Finds the message in a raw Ethernet frame (without its checksum) that has
 * our EtherType. `destination` and `source` have room for 6 bytes each and may
 * be null; `message` becomes a pointer into `frame`.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` for a truncated frame, and for frames of
 * other protocols, which any station receives and should skip;
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_ethernet_parse(const uint8_t *frame,
                              size_t length,
                              uint8_t *destination,
                              uint8_t *source,
                              const uint8_t **message,
                              size_t *message_length,
                              struct loggap_detail *detail);

/**
 * Writes a message as a raw Ethernet frame from `source` to `destination`,
 * both of 6 bytes, into `frame`, and its length into `frame_length`: at least
 * 60 bytes, at most `LOGGAP_ETHERNET_FRAME` for messages of up to
 * `LOGGAP_ETHERNET_MESSAGE` bytes.
 *
 * Errors: `LOGGAP_STATUS_FULL` if the frame does not fit;
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_ethernet_emit(const uint8_t *destination,
                             const uint8_t *source,
                             const uint8_t *message,
                             size_t message_length,
                             uint8_t *frame,
                             size_t capacity,
                             size_t *frame_length,
                             struct loggap_detail *detail);

/**
 * Surveys a schedule in any of the formats: its size, and the memory that
 * reading it takes. Takes time proportional to the text, or to the number of
 * ranks of a binary file.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` with offset, line and column (text) or
 * rank (binary) and the reason; `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_goal_survey(const uint8_t *bytes,
                           size_t length,
                           struct loggap_goal_info *info,
                           struct loggap_detail *detail);

/**
 * Reads a schedule in any of the formats into `sink`, on lent memory (see
 * `loggap_goal_survey`; null if 0 bytes are needed). A sink of null functions
 * only checks the schedule.
 *
 * `label_seed` seeds the hash table of a text's labels. An attacker who knows
 * it can write a text whose reading takes time proportional to the square of
 * its labels: pass an unpredictable number if texts are untrusted, any number
 * otherwise. The result does not depend on it.
 *
 * Errors: as `loggap_goal_survey`; `LOGGAP_STATUS_SINK` with the code, and
 * with the rank and operation of the rejected call if it had one;
 * `LOGGAP_STATUS_MEMORY`. After an error the sink holds an incomplete
 * schedule.
 */
int32_t loggap_goal_read(const uint8_t *bytes,
                         size_t length,
                         uint8_t *memory,
                         size_t memory_bytes,
                         uint64_t label_seed,
                         const struct loggap_sink *sink,
                         struct loggap_detail *detail);

/**
 * Measures the cost of one reading of `clock`, as the median distance between
 * the readings of 33 pairs, and writes it to its `read_cost_ps`. Takes
 * microseconds.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`,
 * `LOGGAP_STATUS_OPTION`.
 */
int32_t loggap_clock_calibrate(struct loggap_clock *clock, struct loggap_detail *detail);

/**
 * Number of detours in the text of a noise trace, malformed lines included; a
 * sufficient capacity for `loggap_noise_read`. 0 for a null pointer.
 */
size_t loggap_noise_count(const uint8_t *text, size_t length);

/**
 * Bytes of memory that `loggap_noise_read` needs for `detours` detours.
 */
size_t loggap_noise_bytes(size_t detours);

/**
 * Parses a noise trace in the text format of netgauge and LogGOPSim into
 * `detours`, and their number into `found`. `length_ps` receives the stated
 * period of the trace, or 0; it may be null. The memory needed is that of
 * `loggap_noise_bytes` for the detours in the text.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` with line, column and reason (for a detour
 * that overlaps with the one before, its index in `at`); `LOGGAP_STATUS_FULL`
 * if there are more than `capacity` detours: the first ones have been written,
 * and `found` is the number of all; `LOGGAP_STATUS_MEMORY`,
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_noise_read(const uint8_t *text,
                          size_t length,
                          uint8_t *memory,
                          size_t bytes,
                          struct loggap_detour *detours,
                          size_t capacity,
                          size_t *found,
                          uint64_t *length_ps,
                          struct loggap_detail *detail);

/**
 * Fills in the defaults for `ranks` ranks and messages of `size` bytes.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_pattern_options_default(struct loggap_pattern_options *options,
                                       uint32_t ranks,
                                       uint64_t size);

/**
 * Writes to `pattern` the `loggap_pattern_kind` with this name: Schedgen's,
 * such as `binomialtreebcast`, or loggap's, such as `binomial-broadcast`.
 * `length` is the name's, without a terminating zero byte.
 *
 * Errors: `LOGGAP_STATUS_UNKNOWN_NAME`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_pattern_named(const char *name,
                             size_t length,
                             uint32_t *pattern,
                             struct loggap_detail *detail);

/**
 * Parameters of the range that contains `size` as one LogGOPS set, for
 * simulations. `eager_limit` becomes S; `UINT64_MAX` makes all messages eager.
 *
 * Errors: `LOGGAP_STATUS_OUTSIDE_PROFILE`; `LOGGAP_STATUS_NOT_MEASURED` and
 * `LOGGAP_STATUS_UNUSABLE` with the name of the parameter;
 * `LOGGAP_STATUS_OPTION` for an invalid profile; `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_profile_loggops(const struct loggap_profile *profile,
                               uint64_t size,
                               uint64_t eager_limit,
                               struct loggap_loggops *set,
                               struct loggap_detail *detail);

/**
 * End-to-end time of one message of `size` bytes, with the interval in which
 * a measurement is expected.
 *
 * Errors: `LOGGAP_STATUS_OUTSIDE_PROFILE`, `LOGGAP_STATUS_NOT_MEASURED`,
 * `LOGGAP_STATUS_OVERFLOW`, `LOGGAP_STATUS_OPTION` for an invalid profile,
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_predict_message(const struct loggap_profile *profile,
                               uint64_t size,
                               struct loggap_prediction *prediction,
                               struct loggap_detail *detail);

/**
 * `PRTT(n, d, s)`: time of `messages` messages of `size` bytes, with a wait of
 * `delay_ps` between two sends, and one reply of `size` bytes.
 *
 * Errors: as `loggap_predict_message`, and `LOGGAP_STATUS_OPTION` if `messages` is 0.
 */
int32_t loggap_predict_prtt(const struct loggap_profile *profile,
                            uint32_t messages,
                            uint64_t delay_ps,
                            uint64_t size,
                            struct loggap_prediction *prediction,
                            struct loggap_detail *detail);

/**
 * End-to-end time of one eager message by the LogGOPS set,
 * `2 (o + (s-1) O) + L + (s-1) G`, in ps.
 *
 * Errors: `LOGGAP_STATUS_OVERFLOW`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_loggops_message(const struct loggap_loggops *set,
                               uint64_t size,
                               uint64_t *time_ps,
                               struct loggap_detail *detail);

/**
 * Time of a collective operation on `ranks` ranks with messages of `size`
 * bytes by its closed form, a `loggap_form_kind`, in ps. `exact` receives 0 if
 * a simulation gives, or may give, another time; it may be null.
 *
 * Errors: `LOGGAP_STATUS_OPTION` for an unknown form,
 * `LOGGAP_STATUS_OVERFLOW`, `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_loggops_collective(const struct loggap_loggops *set,
                                  uint32_t form,
                                  uint32_t ranks,
                                  uint64_t size,
                                  uint64_t *time_ps,
                                  uint32_t *exact,
                                  struct loggap_detail *detail);

/**
 * One line that explains `reason`, terminated by a zero byte; empty for 0 and
 * for unknown numbers. Never null, valid forever.
 */
const char *loggap_reason_text(uint32_t reason);

/**
 * Bytes of memory that `loggap_serve` needs for messages of up to `largest` bytes.
 */
size_t loggap_serve_bytes(size_t largest);

/**
 * Serves one initiator on `link` until it says goodbye, is refused,
 * disconnects or falls silent. Messages are bounded by `max_message` and by
 * the memory, rounded down to a multiple of `LOGGAP_ALIGNMENT`; work and waits
 * for a peer are bounded by `bounds`, null for `loggap_bounds_default`.
 * Blocks, and keeps no pointer to lent memory. Takes about 1.4 KiB of stack on
 * a Cortex-M4F. `served` may be null.
 *
 * `nonce` prevents strangers from directing replies at third parties: on a
 * link that may lose messages the responder sends only one frame per hello
 * until the initiator has echoed it. Pass an unpredictable number, a new one
 * for each call; 0 if the address of every peer is known to be genuine. Until
 * the session has ended the link sends to the address of the first hello, and
 * receives from no other.
 *
 * Errors: `LOGGAP_STATUS_LINK`, `LOGGAP_STATUS_SILENT` (`needed` is the limit
 * in ps), `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_OPTION` (a link whose
 * messages are too small for a frame), `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`. After an error of the link or silence, close the
 * link.
 */
int32_t loggap_serve(const struct loggap_clock *clock,
                     const struct loggap_link *link,
                     const struct loggap_bounds *bounds,
                     uint64_t nonce,
                     uint8_t *memory,
                     size_t bytes,
                     struct loggap_served *served,
                     struct loggap_detail *detail);

/**
 * Bytes of memory that `loggap_responder_init` needs for replies of up to
 * `largest` bytes.
 */
size_t loggap_responder_bytes(size_t largest);

/**
 * Creates a responder without I/O in `memory`, which stays lent until the
 * session is over. Pass every message to `loggap_responder_handle`, and
 * perform the action that it returns. `bounds` may be null for
 * `loggap_bounds_default`; messages are bounded by the memory and by
 * `max_message`. `reliable` is as in `loggap_link`, `nonce` as in
 * `loggap_serve`. A responder serves one session; create another one for the
 * next.
 *
 * Errors: `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_OPTION`,
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_responder_init(struct loggap_responder **responder,
                              const struct loggap_bounds *bounds,
                              uint64_t max_message,
                              uint32_t reliable,
                              uint64_t nonce,
                              uint8_t *memory,
                              size_t bytes,
                              struct loggap_detail *detail);

/**
 * Handles one message of the initiator, received at `now_ps`, which never
 * decreases, and returns the next action.
 *
 * Errors: `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`. Malformed messages are not errors: the responder
 * answers them.
 */
int32_t loggap_responder_handle(struct loggap_responder *responder,
                                uint64_t now_ps,
                                const uint8_t *message,
                                size_t length,
                                struct loggap_responder_action *action,
                                struct loggap_detail *detail);

/**
 * Returns the action that follows a `LOGGAP_ACTION_KIND_SEND_MORE`.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_more(struct loggap_responder *responder,
                              struct loggap_responder_action *action,
                              struct loggap_detail *detail);

/**
 * Tells how to receive the next message.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_next(struct loggap_responder *responder,
                              struct loggap_responder_next_message *next,
                              struct loggap_detail *detail);

/**
 * Takes the duration of the receive call of the next message, in ps, before it
 * is handled.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_timed(struct loggap_responder *responder,
                               uint64_t duration_ps,
                               struct loggap_detail *detail);

/**
 * Ends the session after the silence that `loggap_responder_next` tolerates;
 * `over` becomes 1.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_silence(struct loggap_responder *responder,
                                 uint32_t *over,
                                 struct loggap_detail *detail);

/**
 * Counts of the session so far; `ending` is 0.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_served(struct loggap_responder *responder,
                                struct loggap_served *served,
                                struct loggap_detail *detail);

/**
 * Solves small problems with known answers in every part of the core, to show
 * that it was compiled, linked and stored correctly for this machine. Takes
 * about 7 KiB of stack on a Cortex-M4F. `report` and `count` may be null.
 *
 * Errors: `LOGGAP_STATUS_SELF_TEST` with the number of wrong answers in
 * `found`; `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_selftest(loggap_check_function report,
                        void *context,
                        struct loggap_selftest_count *count,
                        struct loggap_detail *detail);

/**
 * Writes to `needed` the bytes of memory that simulating a schedule in any of
 * the formats needs with these options, reading included. Surveying it for
 * this purpose needs memory, too; see `loggap_goal_survey`.
 *
 * Errors: as `loggap_goal_read`; `LOGGAP_STATUS_SCHEDULE`,
 * `LOGGAP_STATUS_OPTION`.
 */
int32_t loggap_simulate_goal_bytes(const uint8_t *goal,
                                   size_t length,
                                   const struct loggap_simulate_options *options,
                                   uint8_t *memory,
                                   size_t bytes,
                                   size_t *needed,
                                   struct loggap_detail *detail);

/**
 * Simulates a schedule in any of the formats under one parameter set per
 * protocol, ascending by size. `finish_ps` receives the finishing time of each
 * rank, and may be null with a `capacity` of 0.
 *
 * Errors: as `loggap_goal_read`; `LOGGAP_STATUS_MEMORY` (`needed` is what the
 * next step needs, `loggap_simulate_goal_bytes` what all steps need);
 * `LOGGAP_STATUS_SCHEDULE` and `LOGGAP_STATUS_DEADLOCK` with rank, operation
 * and reason (a deadlock also with the number of unfinished operations in
 * `needed`); `LOGGAP_STATUS_OVERFLOW`; `LOGGAP_STATUS_FULL` if `capacity` is
 * less than the number of ranks; `LOGGAP_STATUS_OPTION`; `LOGGAP_STATUS_NULL`;
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_simulate_goal(const uint8_t *goal,
                             size_t length,
                             const struct loggap_protocol *protocols,
                             size_t protocol_count,
                             const struct loggap_simulate_options *options,
                             uint8_t *memory,
                             size_t bytes,
                             struct loggap_simulated *simulated,
                             uint64_t *finish_ps,
                             size_t capacity,
                             struct loggap_detail *detail);

/**
 * Writes to `needed` the bytes of memory that simulating a pattern, a
 * `loggap_pattern_kind`, needs. `memory` may be null with 0 bytes except for
 * patterns that draw random numbers.
 *
 * Errors: `LOGGAP_STATUS_OPTION` with the reason, `LOGGAP_STATUS_SCHEDULE`,
 * `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_simulate_pattern_bytes(uint32_t pattern,
                                      const struct loggap_pattern_options *pattern_options,
                                      const struct loggap_simulate_options *options,
                                      uint8_t *memory,
                                      size_t bytes,
                                      size_t *needed,
                                      struct loggap_detail *detail);

/**
 * Simulates a pattern, a `loggap_pattern_kind`: a collective operation or
 * synthetic traffic. Otherwise as `loggap_simulate_goal`.
 *
 * Errors: as `loggap_simulate_goal`, except those about a file;
 * `loggap_simulate_pattern_bytes` is a sufficient size of the memory.
 */
int32_t loggap_simulate_pattern(uint32_t pattern,
                                const struct loggap_pattern_options *pattern_options,
                                const struct loggap_protocol *protocols,
                                size_t protocol_count,
                                const struct loggap_simulate_options *options,
                                uint8_t *memory,
                                size_t bytes,
                                struct loggap_simulated *simulated,
                                uint64_t *finish_ps,
                                size_t capacity,
                                struct loggap_detail *detail);

/**
 * One line that explains `status`, terminated by a zero byte. Never null,
 * valid forever; any number is allowed.
 */
const char *loggap_status_text(int32_t status);

/**
 * Interface version of the library; compare it with `LOGGAP_ABI_VERSION`.
 */
uint32_t loggap_abi_version(void);

/**
 * Version of the library as text, such as `0.1.0`, terminated by a zero byte.
 * Valid forever.
 */
const char *loggap_version(void);

/**
 * Compares the interface version and the struct sizes of the caller with those
 * of the library. `loggap_check_abi()` calls it with all arguments filled in;
 * call that once before any other function. `bytes` is `sizeof(loggap_sizes)`.
 *
 * Errors: `LOGGAP_STATUS_VERSION`, with the struct that differs in `name`, the
 * library's value in `needed` and the caller's in `found`;
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_abi_check(uint32_t version,
                         const struct loggap_sizes *sizes,
                         size_t bytes,
                         struct loggap_detail *detail);

/**
 * Fills in the default limits of a responder: 1 MiB, 65,536 messages per
 * round, 65,536 rounds per batch, 1 s of pause, 10 s of silence, 1 h per
 * session.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_bounds_default(struct loggap_bounds *bounds);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LOGGAP_H */

#ifndef LOGGAP_CHECK_ABI
#define LOGGAP_CHECK_ABI

/* Whether this header belongs to the library that was linked; call it once
 * before anything else. `detail` may be null. */
static inline int32_t loggap_check_abi(struct loggap_detail *detail) {
  struct loggap_sizes sizes;
  sizes.detail = (uint32_t)sizeof(struct loggap_detail);
  sizes.clock = (uint32_t)sizeof(struct loggap_clock);
  sizes.link = (uint32_t)sizeof(struct loggap_link);
  sizes.bounds = (uint32_t)sizeof(struct loggap_bounds);
  sizes.frame = (uint32_t)sizeof(struct loggap_frame);
  sizes.served = (uint32_t)sizeof(struct loggap_served);
  sizes.responder_action = (uint32_t)sizeof(struct loggap_responder_action);
  sizes.responder_next = (uint32_t)sizeof(struct loggap_responder_next_message);
  sizes.progress = (uint32_t)sizeof(struct loggap_progress);
  sizes.assess_options = (uint32_t)sizeof(struct loggap_assess_options);
  sizes.assess_report = (uint32_t)sizeof(struct loggap_assess_report);
  sizes.profile = (uint32_t)sizeof(struct loggap_profile);
  sizes.fit_point = (uint32_t)sizeof(struct loggap_fit_point);
  sizes.fit_options = (uint32_t)sizeof(struct loggap_fit_options);
  sizes.fit_segment = (uint32_t)sizeof(struct loggap_fit_segment);
  sizes.detector_options = (uint32_t)sizeof(struct loggap_detector_options);
  sizes.detected_change = (uint32_t)sizeof(struct loggap_detected_change);
  sizes.prediction = (uint32_t)sizeof(struct loggap_prediction);
  sizes.protocol = (uint32_t)sizeof(struct loggap_protocol);
  sizes.simulate_options = (uint32_t)sizeof(struct loggap_simulate_options);
  sizes.simulated = (uint32_t)sizeof(struct loggap_simulated);
  sizes.pattern_options = (uint32_t)sizeof(struct loggap_pattern_options);
  sizes.goal_info = (uint32_t)sizeof(struct loggap_goal_info);
  sizes.operation = (uint32_t)sizeof(struct loggap_operation);
  sizes.sink = (uint32_t)sizeof(struct loggap_sink);
  sizes.detour = (uint32_t)sizeof(struct loggap_detour);
  sizes.selftest_count = (uint32_t)sizeof(struct loggap_selftest_count);
  return loggap_abi_check(LOGGAP_ABI_VERSION, &sizes, sizeof sizes, detail);
}

#endif
