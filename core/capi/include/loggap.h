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
 * Alignment of the memory that is lent, in bytes.
 */
#define LOGGAP_ALIGNMENT 8

/**
 * Bytes that no encoded profile exceeds. One with one range takes about 110.
 */
#define LOGGAP_PROFILE_BYTES 3952

/**
 * Bytes to lend to `loggap_detector_init`; `loggap_detector_bytes` says how
 * many of them are needed.
 */
#define LOGGAP_DETECTOR_BYTES 704

/**
 * Bytes of the longest Ethernet frame, without its checksum.
 */
#define LOGGAP_ETHERNET_FRAME 1514

/**
 * Bytes of the longest message in one.
 */
#define LOGGAP_ETHERNET_MESSAGE 1496

/**
 * Most ranges in a profile.
 */
#define LOGGAP_MAX_RANGES 8

/**
 * Most warnings that an assessment lists.
 */
#define LOGGAP_MAX_WARNINGS 24

/**
 * Bytes that a responder is lent at least. What is lent beyond that goes
 * into the largest message that it takes; `LOGGAP_SERVE_BYTES(size)` is for
 * messages of up to `size` bytes.
 */
#define LOGGAP_SERVE_BYTES_LEAST 448

/**
 * Bytes of a responder beside its largest message:
 * `LOGGAP_RESPONDER_BYTES(size)` is for messages of up to `size` bytes.
 */
#define LOGGAP_RESPONDER_BYTES_LEAST 1040

/**
 * Version of this interface. Changes whenever a struct, a constant or the
 * meaning of a function does.
 */
#define LOGGAP_ABI_VERSION 2

/**
 * Bytes of every control frame.
 */
#define LOGGAP_FRAME_BYTES 448

/**
 * Most different rounds that one frame announces.
 */
#define LOGGAP_FRAME_ROUNDS 16

/**
 * What is to be done after a message.
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
   * Send `message`, then do what `loggap_responder_more` says.
   */
  LOGGAP_ACTION_KIND_SEND_MORE = 2,
  /**
   * Send `message` if it has bytes; the session is over.
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
 * The algorithm of a collective of Schedgen 2.
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
 * How a schedule is written down.
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
 * What an operation does.
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
 * A communication pattern, and the options that it takes beside ranks and
 * size. Those of Schedgen 2 begin with `Mpi`.
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
   * Dissemination to several ranks a round: ways.
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
   * The same, one segment at a time on each rank: root, segment.
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
   * Large messages to the root, small ones else: root, skew, outcast.
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
   * One iteration of training ResNet-152; the size is its own.
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
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum loggap_pattern_kind loggap_pattern_kind;
#else
typedef uint32_t loggap_pattern_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why a call failed; `loggap_reason_text` has the words. Numbers do not
 * change between versions of the interface.
 */
enum loggap_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Nothing beyond what the status says.
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
   * `loggap_link.poll_receive` gave a length beyond the capacity.
   */
  LOGGAP_REASON_POLL_LENGTH = 8,
  /**
   * The link's messages are smaller than a control frame.
   */
  LOGGAP_REASON_SMALL_MESSAGES = 9,
  /**
   * A struct has another size in the header than in the library.
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
   * The checksum is another one.
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
   * The responder is taken, and others wait.
   */
  LOGGAP_REASON_BUSY = 27,
  /**
   * The responder got a control frame of this kind out of order.
   */
  LOGGAP_REASON_REFUSED_ORDER = 28,
  /**
   * The responder got no frame where one belongs.
   */
  LOGGAP_REASON_REFUSED_FRAME = 29,
  /**
   * A control frame of this kind is out of order.
   */
  LOGGAP_REASON_FRAME_ORDER = 30,
  /**
   * A message came that is not the reply.
   */
  LOGGAP_REASON_NOT_THE_REPLY = 31,
  /**
   * No size has both round trips and bursts: allow more time or messages.
   */
  LOGGAP_REASON_NO_SIZES = 32,
  /**
   * The profile holds what none can hold.
   */
  LOGGAP_REASON_PROFILE_VALUE = 33,
  /**
   * The profile ends here.
   */
  LOGGAP_REASON_PROFILE_ENDS = 34,
  /**
   * A profile begins with the letters LGPR.
   */
  LOGGAP_REASON_PROFILE_MAGIC = 35,
  /**
   * More ranges or changes than LOGGAP_MAX_RANGES.
   */
  LOGGAP_REASON_PROFILE_RANGES = 36,
  /**
   * A number too large, or not in its shortest form.
   */
  LOGGAP_REASON_PROFILE_NUMBER = 37,
  /**
   * More bytes than the profile has.
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
   * A line needs values at three message sizes.
   */
  LOGGAP_REASON_FEW_POINTS = 42,
  /**
   * The text has something else than `name` here.
   */
  LOGGAP_REASON_TEXT_EXPECTED = 43,
  /**
   * A number is too large.
   */
  LOGGAP_REASON_TEXT_NUMBER = 44,
  /**
   * Num_ranks is 0, missing, or given twice.
   */
  LOGGAP_REASON_TEXT_RANKS = 45,
  /**
   * A rank has no block, two blocks, or a number beyond num_ranks.
   */
  LOGGAP_REASON_TEXT_RANK = 46,
  /**
   * A label is defined twice, or is a word of the grammar.
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
   * More operations in a rank than 32 bits count.
   */
  LOGGAP_REASON_TEXT_TOO_LARGE = 50,
  /**
   * The file is cut off.
   */
  LOGGAP_REASON_FILE_ENDS = 51,
  /**
   * The first eight bytes are those of no binary schedule.
   */
  LOGGAP_REASON_FILE_MAGIC = 52,
  /**
   * The file was used up by a simulation with --save-mem.
   */
  LOGGAP_REASON_FILE_CONSUMED = 53,
  /**
   * A schedule of no ranks.
   */
  LOGGAP_REASON_FILE_RANKS = 54,
  /**
   * A field differs from what the others imply.
   */
  LOGGAP_REASON_FILE_FIELD = 55,
  /**
   * The sizes in the head of a rank's block do not add up.
   */
  LOGGAP_REASON_FILE_BLOCK = 56,
  /**
   * An operation of unknown type, unit or peer.
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
   * Protocols do not ascend by size, or there are none or more than 16.
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
   * The line goes on after start and duration.
   */
  LOGGAP_REASON_NOISE_LINE = 77,
  /**
   * A time is past 213 days.
   */
  LOGGAP_REASON_NOISE_TIME = 78,
  /**
   * The trace has no detour.
   */
  LOGGAP_REASON_NOISE_EMPTY = 79,
  /**
   * A detour starts before the one before it is over.
   */
  LOGGAP_REASON_NOISE_OVERLAP = 80,
  /**
   * A detour reaches past the end of the trace.
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
 * How messages are received.
 */
enum loggap_receive_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The processor is held for all bytes, as in LogGOPSim.
   */
  LOGGAP_RECEIVE_KIND_HOLD = 0,
  /**
   * The interface takes the bytes by itself, as in LogGOPS.
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
 * How messages above the eager limit are sent.
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
 * Why a plan is over.
 */
enum loggap_conclusion_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Every interval is narrow enough, or more measuring would not help.
   */
  LOGGAP_CONCLUSION_KIND_CONVERGED = 0,
  /**
   * The time is spent.
   */
  LOGGAP_CONCLUSION_KIND_TIME_SPENT = 1,
  /**
   * The messages are spent.
   */
  LOGGAP_CONCLUSION_KIND_MESSAGES_SPENT = 2,
  /**
   * There is no room for the samples that are wanted.
   */
  LOGGAP_CONCLUSION_KIND_MEMORY_SPENT = 3,
  /**
   * At the sizes that want samples, all rounds are lost.
   */
  LOGGAP_CONCLUSION_KIND_ROUNDS_LOST = 4,
  /**
   * The progress callback asked to stop.
   */
  LOGGAP_CONCLUSION_KIND_STOPPED = 5,
  /**
   * The session failed before the plan was over; the status says why.
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
 * How a session came to its end.
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
   * The responder refused to go on, and said so.
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
 * What a frame says.
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
   * Responder: accepts it. `version`, `capabilities`, `bounds`.
   */
  LOGGAP_FRAME_KIND_WELCOME = 2,
  /**
   * Responder: does not go on. `refusal`, `limited`, `asked`, `allowed`,
   * `versions`, `responder_versions`.
   */
  LOGGAP_FRAME_KIND_REFUSE = 3,
  /**
   * Responder: others are before. `position`.
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
   * Responder: its own timings. `sequence`, `values_ps`, `round_count`.
   */
  LOGGAP_FRAME_KIND_REPORT = 7,
  /**
   * Initiator: drops whatever is under way. `token`.
   */
  LOGGAP_FRAME_KIND_SYNC = 8,
  /**
   * Responder: has dropped it. `token`, `received`, `replied`.
   */
  LOGGAP_FRAME_KIND_SYNCED = 9,
  /**
   * Initiator: the session is over.
   */
  LOGGAP_FRAME_KIND_BYE = 10,
  /**
   * Responder: asks for a hello with this `nonce`.
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
 * Which of a range's parameters were measured: bits of `loggap_range.known`.
 * `loggap_known_latency` is missing, too, where overheads overlap with it.
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
 * What a bound is about.
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
 * Whether a number may be trusted.
 */
enum loggap_mark_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Its interval is as narrow as was asked for.
   */
  LOGGAP_MARK_KIND_CONVERGED = 0,
  /**
   * Time, messages or memory ran out before: more measuring would help.
   */
  LOGGAP_MARK_KIND_BUDGET_SPENT = 1,
  /**
   * The points do not lie on the model's line: more measuring would not
   * help.
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
   * None in particular.
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
 * Why a responder does not go on.
 */
enum loggap_refusal_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * No version is known to both: `versions`, `responder_versions`.
   */
  LOGGAP_REFUSAL_KIND_VERSION = 0,
  /**
   * Another initiator is served and `asked` wait.
   */
  LOGGAP_REFUSAL_KIND_BUSY = 1,
  /**
   * `asked` of what `limited` says, where `allowed` are allowed.
   */
  LOGGAP_REFUSAL_KIND_BOUNDS = 2,
  /**
   * A frame of kind `asked` does not belong there.
   */
  LOGGAP_REFUSAL_KIND_OUT_OF_ORDER = 3,
  /**
   * No frame where one belongs; byte `asked` was wrong.
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
 * What became of a call. Functions that return it return 0
 * (`LOGGAP_STATUS_OK`) exactly when they did all that they say.
 */
enum loggap_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * All is done.
   */
  LOGGAP_STATUS_OK = 0,
  /**
   * A pointer that has to point somewhere is null.
   */
  LOGGAP_STATUS_NULL = 1,
  /**
   * A pointer is not aligned as its type, or as `LOGGAP_ALIGNMENT` where
   * memory is lent.
   */
  LOGGAP_STATUS_ALIGNMENT = 2,
  /**
   * The lent memory is too small. Less than `needed` bytes would not do, but
   * they may only be what comes first (a simulation needs more once it has
   * read its schedule): the function whose name ends in `_bytes` says how
   * many are enough for all.
   */
  LOGGAP_STATUS_MEMORY = 3,
  /**
   * An array for results is too small; it holds what fits, or nothing
   * where the function says so. `needed` elements are enough.
   */
  LOGGAP_STATUS_FULL = 4,
  /**
   * An option or argument has a value that it cannot have.
   */
  LOGGAP_STATUS_OPTION = 5,
  /**
   * The header is not the one that belongs to this library.
   */
  LOGGAP_STATUS_VERSION = 6,
  /**
   * The object was not made by the function that makes it, or the memory
   * that holds it was overwritten.
   */
  LOGGAP_STATUS_HANDLE = 7,
  /**
   * A callback of the link failed; `found` is the code that it returned.
   */
  LOGGAP_STATUS_LINK = 8,
  /**
   * The peer was silent for too long.
   */
  LOGGAP_STATUS_SILENT = 9,
  /**
   * The responder refused.
   */
  LOGGAP_STATUS_REFUSED = 10,
  /**
   * What the peer sent does not belong there.
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
   * There are too few values to compute the result.
   */
  LOGGAP_STATUS_NO_DATA = 14,
  /**
   * The profile does not hold this size.
   */
  LOGGAP_STATUS_OUTSIDE_PROFILE = 15,
  /**
   * The profile does not hold a parameter that is needed.
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
   * The simulated program never comes to its end.
   */
  LOGGAP_STATUS_DEADLOCK = 21,
  /**
   * There is nothing of this name.
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
 * What a reader of the profile should know.
 */
enum loggap_warning_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The gap exceeds the round trip at `value` sizes from `size` on:
   * `PRTT(2,0,s)` was the delay there.
   */
  LOGGAP_WARNING_KIND_DELAY_FALLBACK = 0,
  /**
   * The delay was below the gap at `value` sizes from `size` on: no send
   * overhead there.
   */
  LOGGAP_WARNING_KIND_DELAY_TOO_SHORT = 1,
  /**
   * The value of `parameter` at size 1 or its slope is 0 in the range from
   * `size` on, as it would be negative without that bound.
   */
  LOGGAP_WARNING_KIND_BOUND = 2,
  /**
   * From `size` on bursts stand still for `value` ps, as long as the timer
   * of delayed acknowledgements.
   */
  LOGGAP_WARNING_KIND_STALL = 3,
  /**
   * Overheads overlap with the latency in the range from `size` on.
   */
  LOGGAP_WARNING_KIND_OVERLAP = 4,
  /**
   * Points of `parameter` lie `value` millionths beside its line in the
   * range from `size` on, beyond their noise.
   */
  LOGGAP_WARNING_KIND_MISFIT = 5,
  /**
   * Only `value` sizes in the range from `size` on.
   */
  LOGGAP_WARNING_KIND_FEW_SIZES = 6,
  /**
   * The protocol changes somewhere between `size` and `value`.
   */
  LOGGAP_WARNING_KIND_CHANGE_NOT_EXACT = 7,
  /**
   * `value` sizes from `size` on were not measured for want of time or
   * messages.
   */
  LOGGAP_WARNING_KIND_SIZES_LEFT_OUT = 8,
  /**
   * `parameter` came out above the round trip, its upper bound, at `value`
   * sizes from `size` on, and was set to it.
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
 * A responder without I/O, see `loggap_responder_init`.
 */
typedef struct loggap_responder loggap_responder;

/**
 * A streaming detector of protocol changes, see `loggap_detector_init`.
 */
typedef struct loggap_detector loggap_detector;

/**
 * How far an assessment has come.
 */
typedef struct loggap_progress {
  /**
   * Initiators that are served before this one; 0 while measuring.
   */
  uint32_t queue_position;
  /**
   * Share of the budget that is spent, time or messages, in millionths.
   */
  uint32_t spent_ppm;
  /**
   * Messages sent, replies included.
   */
  uint64_t messages;
  /**
   * Rounds lost.
   */
  uint64_t lost;
} loggap_progress;

/**
 * Called after each batch of rounds, and while waiting for a turn. Returns
 * 0 to go on; anything else ends the measurement: what was measured until
 * then is assessed.
 */
typedef int32_t (*loggap_progress_function)(void *context,
                                            const struct loggap_progress *progress);

/**
 * What an assessment is to do. Begin with `loggap_assess_options_default`.
 */
typedef struct loggap_assess_options {
  /**
   * Smallest message size in bytes, at least 1.
   */
  uint32_t smallest;
  /**
   * Largest message size in bytes; the link has to take it.
   */
  uint32_t largest;
  /**
   * Sizes of the first sweep, from 2 to `sizes`.
   */
  uint32_t coarse_sizes;
  /**
   * Most sizes, those added around protocol changes included; up to
   * 65,535.
   */
  uint32_t sizes;
  /**
   * Values kept of each quantity at each size, from 8 to 65,535.
   */
  uint32_t repetitions;
  /**
   * Most places where ranges meet, below `LOGGAP_MAX_RANGES`; 0 takes all
   * sizes as one range.
   */
  uint32_t max_changes;
  /**
   * Messages in a burst, at least 2.
   */
  uint32_t messages;
  /**
   * 1 where sizes may be added around changes, or left out for want of
   * time; 0 where exactly those of the first sweep are measured.
   */
  uint32_t adapt_sizes;
  /**
   * A number has converged when half its interval is at most this many
   * millionths of it.
   */
  uint32_t relative_error_ppm;
  /**
   * Points may lie this many millionths beside their range's line before
   * another range begins, and jumps smaller than this divide no range.
   */
  uint32_t tolerance_ppm;
  /**
   * Level of all intervals in percent, above 0 and below 100.
   */
  double confidence_percent;
  /**
   * Longest time to measure, in ps.
   */
  uint64_t max_time_ps;
  /**
   * On a link so slow that sizes would be left out, the longest time grows
   * up to this, in ps; no more than `max_time_ps` keeps it as it is.
   */
  uint64_t longest_time_ps;
  /**
   * Most messages, replies included.
   */
  uint64_t max_messages;
  /**
   * Decides the order of the rounds.
   */
  uint64_t seed;
  /**
   * Longest wait for the responder's welcome, in ps.
   */
  uint64_t handshake_ps;
  /**
   * Longest wait between two signs of life while others are served, in ps.
   */
  uint64_t queue_ps;
  /**
   * Longest wait for a reply, in ps.
   */
  uint64_t reply_ps;
  /**
   * On a link that loses messages, the shortest wait before a message is
   * given up, in ps.
   */
  uint64_t shortest_reply_ps;
  /**
   * Told how far the measurement has come; may be null.
   */
  loggap_progress_function progress;
  /**
   * Passed to `progress`.
   */
  void *progress_context;
} loggap_assess_options;

/**
 * Reads a counter. Never decreases, never wraps: extend a narrower counter
 * to 64 bits. `context` is that of the clock.
 */
typedef uint64_t (*loggap_now_function)(void *context);

/**
 * A clock. Filled in by the caller; read during calls only.
 */
typedef struct loggap_clock {
  /**
   * Passed to `now`.
   */
  void *context;
  /**
   * The counter; not null.
   */
  loggap_now_function now;
  /**
   * Picoseconds a tick, times 2^32; not 0.
   * `LOGGAP_PICOS_PER_TICK_Q32(hz)` for a counter of so many Hz below 2^32.
   */
  uint64_t picos_per_tick_q32;
  /**
   * What one call of `now` costs, in ps: `loggap_clock_calibrate` finds
   * out.
   */
  uint64_t read_cost_ps;
} loggap_clock;

/**
 * Sends one whole message and returns as soon as the bytes may be reused:
 * what this call takes is the send overhead. Returns 0, or a code of your own
 * when the peer is gone; the session ends then, and the code stands in
 * `loggap_detail.found`.
 */
typedef int32_t (*loggap_send_function)(void *context, const uint8_t *message, size_t length);

/**
 * Looks once for a message, without waiting or for a bounded time. Returns 0
 * when none is complete; 1 when one is, with its bytes at the front of
 * `buffer` and their number, at most `capacity`, in `length`; a negative code
 * of your own when the peer is gone, which ends the session.
 *
 * A byte stream collects exactly `capacity` bytes, in the same buffer across
 * calls. A datagram link never merges two messages, and drops one that is
 * longer than `capacity` as if it had not come (0): anybody can send such a
 * one, and no peer of ours does.
 */
typedef int32_t (*loggap_poll_function)(void *context,
                                        uint8_t *buffer,
                                        size_t capacity,
                                        size_t *length);

/**
 * Forgets a message received in part and whatever else has arrived. Returns
 * 0, or a code of your own when the peer is gone.
 */
typedef int32_t (*loggap_discard_function)(void *context);

/**
 * A connection that carries messages both ways. Filled in by the caller;
 * read during calls only. The functions are called on the thread that calls
 * the library; they have to return normally.
 */
typedef struct loggap_link {
  /**
   * Passed to all functions.
   */
  void *context;
  /**
   * Sends; not null.
   */
  loggap_send_function send;
  /**
   * Receives; not null.
   */
  loggap_poll_function poll_receive;
  /**
   * Forgets; may be null where every message arrives.
   */
  loggap_discard_function discard;
  /**
   * Bytes of the largest message that one `send` takes, at least
   * `LOGGAP_FRAME_BYTES`.
   */
  uint64_t max_message;
  /**
   * 1 where every message arrives, in order; 0 where some may be lost.
   */
  uint32_t reliable;
} loggap_link;

/**
 * A measured number and the interval in which the true one lies.
 */
typedef struct loggap_estimate {
  /**
   * Best value.
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
   * Value at size 1, in ps; an extrapolation where the range begins later,
   * and 0 where the line lies below 0 there.
   */
  struct loggap_estimate at_one;
  /**
   * Slope, in 2^-16 ps per byte. Where a single size was measured the
   * interval reaches from `INT64_MIN` to `INT64_MAX`.
   */
  struct loggap_estimate per_byte;
  /**
   * The size at which the line is known best.
   */
  uint64_t centre;
  /**
   * The value there, in ps: that of a size s is
   * `at_centre_ps + (s - centre) * per_byte`.
   */
  int64_t at_centre_ps;
  /**
   * Half the interval of the value there, in ps.
   */
  uint64_t centre_half_width_ps;
  /**
   * How far a round measured later may lie from the line, in millionths.
   */
  uint32_t scatter_ppm;
} loggap_line;

/**
 * The parameters of one protocol: sizes from `first` to `last`.
 */
typedef struct loggap_range {
  /**
   * Smallest size of the range, in bytes.
   */
  uint64_t first;
  /**
   * Largest size of the range, as far as it was measured.
   */
  uint64_t last;
  /**
   * What is known beside `gap`: bits of `loggap_known`.
   */
  uint32_t known;
  /**
   * g and G: the least time between two messages.
   */
  struct loggap_line gap;
  /**
   * Half the round trip, `PRTT(1,0,s)/2`.
   */
  struct loggap_line half_rtt;
  /**
   * o_s: time the sender is engaged.
   */
  struct loggap_line send_overhead;
  /**
   * o_r: time the receiver is engaged.
   */
  struct loggap_line recv_overhead;
  /**
   * L, in ps: `PRTT(1,0,1)/2 - o_s - o_r`.
   */
  struct loggap_estimate latency;
} loggap_range;

/**
 * A size at which a curve jumps: the link changes its protocol.
 */
typedef struct loggap_change {
  /**
   * First size of the new protocol.
   */
  uint64_t at;
  /**
   * The new protocol begins at this size at the earliest.
   */
  uint64_t low;
  /**
   * The new protocol begins at this size at the latest.
   */
  uint64_t high;
  /**
   * The curve that shows it best: a `loggap_parameter_kind`.
   */
  uint32_t parameter;
  /**
   * Height of the jump in millionths of the curve's value before it;
   * negative where the new protocol is faster.
   */
  int32_t jump_ppm;
  /**
   * 1 where a range begins here; 0 where the jump is significant but
   * smaller than the tolerance, or too close to another one.
   */
  uint32_t splits;
} loggap_change;

/**
 * The parameters of a link: ranges of sizes that a line each describes,
 * ascending and without holes, and the jumps among them. Where a range begins
 * without a jump, the curves bend.
 */
typedef struct loggap_profile {
  /**
   * Used elements of `ranges`.
   */
  uint32_t range_count;
  /**
   * Used elements of `changes`.
   */
  uint32_t change_count;
  /**
   * The ranges.
   */
  struct loggap_range ranges[LOGGAP_MAX_RANGES];
  /**
   * The jumps, by ascending size.
   */
  struct loggap_change changes[LOGGAP_MAX_RANGES];
} loggap_profile;

/**
 * One warning.
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
 * What an assessment says beside the profile.
 */
typedef struct loggap_assess_report {
  /**
   * A `loggap_conclusion_kind`.
   */
  uint32_t conclusion;
  /**
   * 1 where every number of the profile has converged.
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
   * Rounds that came to their end.
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
   * Used elements of `warnings`.
   */
  uint32_t warning_count;
  /**
   * Warnings beyond those.
   */
  uint32_t further_warnings;
  /**
   * What a reader of the profile should know.
   */
  struct loggap_warning warnings[LOGGAP_MAX_WARNINGS];
} loggap_assess_report;

/**
 * Where and why a call failed. Filled in whenever a function that takes one
 * fails; after success it says `LOGGAP_STATUS_OK` and nothing else. Fields
 * that say nothing about this failure are 0, or `UINT32_MAX` for ranks and
 * operations.
 */
typedef struct loggap_detail {
  /**
   * What the function returned, a `loggap_status`.
   */
  int32_t status;
  /**
   * The rank concerned, or `UINT32_MAX`.
   */
  uint32_t rank;
  /**
   * The operation concerned, counted on its rank, or `UINT32_MAX`.
   */
  uint32_t op;
  /**
   * Line in a text, from 1; 0 where there is none.
   */
  uint32_t line;
  /**
   * Byte in the line, from 1; 0 where there is none.
   */
  uint32_t column;
  /**
   * Offset of the byte at fault, index of the element at fault, or the
   * message size concerned.
   */
  uint64_t at;
  /**
   * How much would be enough, or what was expected.
   */
  uint64_t needed;
  /**
   * What was found instead, or the code that a callback returned.
   */
  uint64_t found;
  /**
   * Why, a `loggap_reason`; `loggap_reason_text` has the words.
   */
  uint32_t reason;
  /**
   * Name of the field at fault, not ended by a zero byte; null where there
   * is none.
   */
  const char *name;
  /**
   * Bytes of `name`.
   */
  size_t name_length;
} loggap_detail;

/**
 * Settings of a streaming detector. Begin with
 * `loggap_detector_options_default`.
 */
typedef struct loggap_detector_options {
  /**
   * How many times as far as the points of the present protocol those
   * ahead must lie from its line; 2 as in the paper.
   */
  double factor;
  /**
   * Resolution of the values in ps.
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
   * The value in ps: finite and within 2^62.
   */
  double value_ps;
  /**
   * Its standard error in ps, 0 where unknown.
   */
  double sigma_ps;
} loggap_fit_point;

/**
 * A change that a streaming detector found.
 */
typedef struct loggap_detected_change {
  /**
   * 1 where a change was found; otherwise the rest is 0.
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
   * First size of the new protocol, at the latest.
   */
  uint64_t at;
  /**
   * g of the old protocol in ps; 0 where it is not known.
   */
  double gap_ps;
  /**
   * G of the old protocol in ps per byte; 0 where it is not known.
   */
  double gap_per_byte_ps;
} loggap_detected_change;

/**
 * What a fit is to do. Begin with `loggap_fit_options_default`.
 */
typedef struct loggap_fit_options {
  /**
   * Level of the intervals in percent, above 0 and below 100.
   */
  double confidence_percent;
  /**
   * How far a point may lie from its line, relative to its value; a change
   * that jumps by less divides no range.
   */
  double tolerance;
  /**
   * Resolution of the values in ps.
   */
  double resolution_ps;
  /**
   * Segments are at most one more than this, which is at most 15; 0 looks
   * for no changes.
   */
  uint32_t max_changes;
} loggap_fit_options;

/**
 * A fitted number with its interval.
 */
typedef struct loggap_fit_estimate {
  /**
   * The number.
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
 * The line of one range.
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
   * Size of the first point: where the range begins at the latest.
   */
  uint64_t first_size;
  /**
   * Size of the last point.
   */
  uint64_t last_size;
  /**
   * The range begins at this size at the earliest.
   */
  uint64_t begins_low;
  /**
   * Points that the line was fitted to.
   */
  uint64_t points;
  /**
   * Points of the range left out as outliers.
   */
  uint64_t outliers;
  /**
   * g: the value at one byte, in ps; never negative.
   */
  struct loggap_fit_estimate gap_ps;
  /**
   * G: ps per byte; never negative.
   */
  struct loggap_fit_estimate gap_per_byte_ps;
  /**
   * Largest deviation of a point from the line, relative to its value.
   */
  double largest_deviation;
  /**
   * By how many millionths the value jumps at the first size where a
   * protocol change begins the range; 0 where the curve only bends.
   */
  int32_t jump_ppm;
  /**
   * Which of g and G are 0 because they would be negative: 1 for g, 2 for
   * G, 3 for both.
   */
  uint32_t bound;
} loggap_fit_segment;

/**
 * What a responder allows.
 */
typedef struct loggap_bounds {
  /**
   * Bytes of the largest message and of the largest reply.
   */
  uint32_t message;
  /**
   * Most messages in one round.
   */
  uint32_t messages;
  /**
   * Most rounds in one batch, repetitions counted.
   */
  uint32_t rounds;
  /**
   * Longest pause between two receives that the responder is asked for,
   * in ps.
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
 * A round, or the same round several times in a row.
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
   * How often the round is repeated, 1 to 65,535.
   */
  uint32_t repeats;
  /**
   * 0: one reply after the last message; 1: one after each.
   */
  uint32_t reply_each;
  /**
   * 1 where the responder times its receive calls; only without
   * repetition.
   */
  uint32_t timed;
  /**
   * How long the responder waits before it looks for each message but the
   * first, in ps.
   */
  uint64_t pause_ps;
} loggap_round;

/**
 * A control frame. Which fields count is said at each `loggap_frame_kind`;
 * the others are 0 and are not looked at.
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
   * Of a synchronisation.
   */
  uint32_t token;
  /**
   * Initiators before this one.
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
   * The version that both speak.
   */
  uint32_t version;
  /**
   * Bits of what a side can do. Bit 0: it can ask for, or give, a description
   * of the responder, by frames of kinds that are not among these.
   */
  uint32_t capabilities;
  /**
   * Bounds asked for, or enforced.
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
   * See `loggap_refusal_kind`.
   */
  uint64_t asked;
  /**
   * See `loggap_refusal_kind`.
   */
  uint64_t allowed;
  /**
   * Data messages that the responder has received.
   */
  uint64_t received;
  /**
   * Data messages that the responder has sent.
   */
  uint64_t replied;
  /**
   * Of a challenge; 0 where there was none.
   */
  uint64_t nonce;
  /**
   * Used elements of `rounds` or `values_ps`, 1 to `LOGGAP_FRAME_ROUNDS`.
   */
  uint32_t round_count;
  /**
   * The rounds of a batch.
   */
  struct loggap_round rounds[LOGGAP_FRAME_ROUNDS];
  /**
   * Time in the receive calls of each round, in ps; 0 where not timed.
   */
  uint64_t values_ps[LOGGAP_FRAME_ROUNDS];
} loggap_frame;

/**
 * What a look at a schedule tells.
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
   * Operations of all ranks.
   */
  uint64_t ops;
  /**
   * Dependencies of all ranks.
   */
  uint64_t edges;
  /**
   * Dependencies of the rank that has most.
   */
  uint64_t edges_most;
  /**
   * Bytes to lend to `loggap_goal_read`; may be 0.
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
   * The other rank; `UINT32_MAX` for any, 0 for a calculation.
   */
  uint32_t peer;
  /**
   * The message's tag; `UINT64_MAX` for any, 0 for a calculation.
   */
  uint64_t tag;
  /**
   * The rank's processor that it occupies.
   */
  uint32_t cpu;
  /**
   * The rank's network interface that it occupies.
   */
  uint32_t nic;
  /**
   * Bytes of a message, or picoseconds of a calculation.
   */
  uint64_t amount;
} loggap_operation;

/**
 * Where a schedule goes. Each function may be null, and returns 0 to go on or
 * a code of your own to refuse the element: reading ends then with
 * `LOGGAP_STATUS_SINK`, the rank and the operation that the call was about,
 * `UINT32_MAX` where it was about none. Calls come rank by rank in ascending
 * order.
 */
typedef struct loggap_sink {
  /**
   * Passed to all functions.
   */
  void *context;
  /**
   * Tells the number of ranks, first of all.
   */
  int32_t (*ranks)(void *context, uint32_t ranks);
  /**
   * Opens a rank.
   */
  int32_t (*begin_rank)(void *context, uint32_t rank);
  /**
   * The next operation of the open rank, which count from 0.
   */
  int32_t (*op)(void *context, uint32_t index, const struct loggap_operation *op);
  /**
   * Operation `op` of the open rank waits until `on` has completed, or
   * where `start` is 1 until it has started.
   */
  int32_t (*requires)(void *context, uint32_t op, uint32_t on, uint32_t start);
  /**
   * Closes the open rank.
   */
  int32_t (*end_rank)(void *context);
} loggap_sink;

/**
 * Time that the operating system took from a program.
 */
typedef struct loggap_detour {
  /**
   * When it began, in ps from the start of the trace.
   */
  uint64_t start_ps;
  /**
   * How long it took, in ps.
   */
  uint64_t duration_ps;
} loggap_detour;

/**
 * Settings of a pattern; those that it does not take are ignored. Begin with
 * `loggap_pattern_options_default`.
 */
typedef struct loggap_pattern_options {
  /**
   * Ranks of each group.
   */
  uint32_t ranks;
  /**
   * Rank at the root.
   */
  uint32_t root;
  /**
   * Bytes of the collective.
   */
  uint64_t size;
  /**
   * Bytes of a segment; 0 for the whole message.
   */
  uint64_t segment;
  /**
   * Sends in flight at once; 0 for all.
   */
  uint32_t window;
  /**
   * Targets of a rank in each round.
   */
  uint32_t ways;
  /**
   * A calculation between the rounds, in ps; 0 for none.
   */
  uint64_t compute_ps;
  /**
   * Divides the size of the small messages.
   */
  uint32_t skew;
  /**
   * 1 where the rank above the root sends large messages only.
   */
  uint32_t outcast;
  /**
   * A `loggap_algorithm_kind`.
   */
  uint32_t algorithm;
  /**
   * Disjoint groups of ranks that all run the pattern.
   */
  uint32_t groups;
  /**
   * Repetitions, one after the other on each rank.
   */
  uint32_t repeat;
  /**
   * 1 where each repetition has the root one rank further.
   */
  uint32_t rotate_root;
  /**
   * Decides random patterns.
   */
  uint64_t seed;
  /**
   * A calculation beside the pattern on every rank, in ps; 0 for none.
   */
  uint64_t background_ps;
  /**
   * Pieces into which it is cut, in ps; 0 for one piece.
   */
  uint64_t background_poll_ps;
  /**
   * The processor that calculates, 0 to 255.
   */
  uint32_t background_cpu;
} loggap_pattern_options;

/**
 * One set of parameters of the LogGOPS model.
 */
typedef struct loggap_loggops {
  /**
   * L: the wire's latency, in ps.
   */
  uint64_t latency_ps;
  /**
   * o: time an end is engaged with a message of one byte, in ps.
   */
  uint64_t overhead_ps;
  /**
   * g: least time between two messages of one byte, in ps.
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
   * S: messages of more bytes wait for their receiver.
   */
  uint64_t eager_limit;
} loggap_loggops;

/**
 * A predicted time and the interval in which a measurement is expected.
 */
typedef struct loggap_prediction {
  /**
   * Best value, in ps.
   */
  uint64_t value_ps;
  /**
   * Lower end, in ps.
   */
  uint64_t low_ps;
  /**
   * Upper end, in ps.
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
   * Rounds that came to their end.
   */
  uint64_t rounds;
  /**
   * Messages that belonged to no round under way.
   */
  uint64_t strays;
} loggap_served;

/**
 * What is to be done after a message.
 */
typedef struct loggap_responder_action {
  /**
   * A `loggap_action_kind`.
   */
  uint32_t kind;
  /**
   * At the end a `loggap_ending_kind`, otherwise 0.
   */
  uint32_t ending;
  /**
   * What to send: inside of the responder's memory, valid until the next call
   * on it.
   */
  const uint8_t *message;
  /**
   * Its bytes; 0 where nothing is to be sent.
   */
  size_t length;
} loggap_responder_action;

/**
 * What the next message is like.
 */
typedef struct loggap_responder_next_message {
  /**
   * Its bytes on a stream.
   */
  size_t length;
  /**
   * 1 where the duration of the receive call for it is to be given to
   * `loggap_responder_timed` before it is handled.
   */
  uint32_t timed;
  /**
   * How long to wait before looking for it, in ps.
   */
  uint64_t pause_ps;
  /**
   * How long to wait for it before `loggap_responder_silence`, in ps.
   */
  uint64_t silence_ps;
} loggap_responder_next_message;

/**
 * Told about each check of the self-test. `name` has `length` bytes and no
 * zero byte at the end; `passed` is 1 or 0. `computed` is 0 where nothing was
 * computed.
 */
typedef void (*loggap_check_function)(void *context,
                                      const char *name,
                                      size_t length,
                                      uint32_t passed,
                                      uint64_t computed,
                                      uint64_t answer);

/**
 * The closing count of the self-test.
 */
typedef struct loggap_selftest_count {
  /**
   * Checks whose answer is right.
   */
  uint32_t passed;
  /**
   * All others.
   */
  uint32_t failed;
} loggap_selftest_count;

/**
 * How to simulate. All zeros are the rules of LogGOPSim without noise.
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
   * Elements of `detours`.
   */
  size_t detour_count;
  /**
   * Period with which the detours repeat, in ps; 0: the end of the last
   * one.
   */
  uint64_t noise_length_ps;
  /**
   * Decides where in the trace each rank begins.
   */
  uint64_t noise_seed;
  /**
   * 1 where all ranks begin at the same place.
   */
  uint32_t noise_together;
  /**
   * Of the labels of a schedule's text; see `loggap_goal_read`.
   */
  uint64_t label_seed;
} loggap_simulate_options;

/**
 * The parameters of one protocol: for messages of `first` bytes and more, up
 * to the next protocol.
 */
typedef struct loggap_protocol {
  /**
   * First size that uses it; the first protocol holds for smaller ones,
   * too.
   */
  uint64_t first;
  /**
   * Its parameters.
   */
  struct loggap_loggops parameters;
} loggap_protocol;

/**
 * How a simulation ended.
 */
typedef struct loggap_simulated {
  /**
   * When the last rank was done, in ps.
   */
  uint64_t makespan_ps;
  /**
   * Operations and messages that were simulated.
   */
  uint64_t events;
  /**
   * Operations of the schedule.
   */
  uint64_t ops;
  /**
   * Number of ranks.
   */
  uint32_t ranks;
  /**
   * The rank that was last, the lowest of several.
   */
  uint32_t last_rank;
} loggap_simulated;

/**
 * Sizes of the structs as the caller was compiled, in bytes.
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
 * Fills in the usual options: sizes from 1 to 1024 bytes, 8 of them and 4
 * more around protocol changes, at most 3 ranges, 12 values each, bursts of 10,
 * 5 percent at 95 percent confidence, a tolerance of 6 percent, at most 2.5 s and 34,000 messages. They
 * are meant for a small memory; a host takes more sizes, values and changes.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_assess_options_default(struct loggap_assess_options *options);

/**
 * Bytes to lend to `loggap_assess` with these options; 0 where they are
 * impossible. `LOGGAP_ASSESS_BYTES` is the same as a constant expression, or
 * a little more.
 */
size_t loggap_assess_bytes(const struct loggap_assess_options *options);

/**
 * Assesses the link: opens a session with the responder at its other end,
 * plans and times rounds until every number has converged or the budget is
 * spent, finds the protocols and fits their parameters. Blocks; keeps
 * nothing of what it was lent. Takes about 7 KiB of stack on a Cortex-M4F.
 * `report` may be null.
 *
 * Errors: `LOGGAP_STATUS_OPTION` with the name of the option,
 * `LOGGAP_STATUS_MEMORY` (see `loggap_assess_bytes`), `LOGGAP_STATUS_LINK`,
 * `LOGGAP_STATUS_SILENT`, `LOGGAP_STATUS_REFUSED`, `LOGGAP_STATUS_PROTOCOL`,
 * `LOGGAP_STATUS_STOPPED` (while waiting for a turn), `LOGGAP_STATUS_NO_DATA`,
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 * Where the session fails after rounds have been measured (`LINK`, `SILENT`,
 * `REFUSED`, `PROTOCOL`), `profile` and `report` hold what those rounds say:
 * the conclusion is `LOGGAP_CONCLUSION_KIND_FAILED`, and `converged` is 0.
 * After any other failure `report` has the counts as far as they are known,
 * and `profile` has no ranges once measuring has begun: as long as it lasts,
 * messages of up to half the size of a profile pass through its memory.
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
 * Like `loggap_assess`, but finds protocol changes in one pass that looks
 * three points ahead, as the paper does: less code and far less work than
 * the search for jumps, and it sees less.
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
 * Errors: `LOGGAP_STATUS_FULL` (`LOGGAP_PROFILE_BYTES` are always enough;
 * `needed` says what this profile needs at most), `LOGGAP_STATUS_OPTION` for
 * a profile that none can be, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_profile_encode(const struct loggap_profile *profile,
                              uint8_t *bytes,
                              size_t capacity,
                              size_t *length,
                              struct loggap_detail *detail);

/**
 * Reads an encoded profile that fills `length` bytes.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` with the offset in `at` and the reason;
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`. `profile` has no ranges
 * then.
 */
int32_t loggap_profile_decode(const uint8_t *bytes,
                              size_t length,
                              struct loggap_profile *profile,
                              struct loggap_detail *detail);

/**
 * Bytes to lend to `loggap_detector_init`.
 */
size_t loggap_detector_bytes(void);

/**
 * Fills in the usual settings: factor 2, three points ahead, 1 ps.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_detector_options_default(struct loggap_detector_options *options);

/**
 * Makes a detector in `memory`, which is lent for as long as it is used.
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
 * Takes the next point of a sweep, larger than the one before. A change is
 * told once the points after it show where it is.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` for numbers that are no point (the
 * detector is as before), `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_detector_push(struct loggap_detector *detector,
                             const struct loggap_fit_point *point,
                             struct loggap_detected_change *change,
                             struct loggap_detail *detail);

/**
 * Ends the sweep: a change that only further points would have told the place
 * of.
 *
 * Errors: `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_detector_finish(struct loggap_detector *detector,
                               struct loggap_detected_change *change,
                               struct loggap_detail *detail);

/**
 * Fills in the usual options: 95 percent, a tolerance of 6 percent, a
 * resolution of 1 ps, up to 7 changes.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_fit_options_default(struct loggap_fit_options *options);

/**
 * Bytes to lend to `loggap_fit` for so many points.
 * `LOGGAP_FIT_BYTES` is the same as a constant expression, or a little more.
 */
size_t loggap_fit_bytes(size_t points);

/**
 * Divides a sweep of at least three `points`, which ascend strictly by size,
 * into ranges, at protocol changes and where a line would lie beside a point
 * by more than the tolerance, and fits a line to each. Puts them by ascending
 * size to `segments` and their number to `count`.
 *
 * Errors: `LOGGAP_STATUS_NO_DATA` below three points;
 * `LOGGAP_STATUS_MALFORMED` for the point `at` whose numbers are none or
 * whose size does not ascend; `LOGGAP_STATUS_FULL` where `capacity` is less
 * than the segments: it holds the first ones, and `count` says how many there
 * are; `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_OPTION`, `LOGGAP_STATUS_NULL`,
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
 * Like `loggap_fit`, but finds the changes in one pass that looks three
 * points ahead, as the paper does: less code and less work, and it sees less.
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
 * Reads the control frame at the front of `length` bytes; what follows it is
 * not looked at.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` with the offset of the byte at fault in
 * `at`, the reason, and what was found; `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`. `frame` is left alone then.
 */
int32_t loggap_frame_parse(const uint8_t *bytes,
                           size_t length,
                           struct loggap_frame *frame,
                           struct loggap_detail *detail);

/**
 * Writes `frame` into `bytes`, which are `LOGGAP_FRAME_BYTES`.
 *
 * Errors: `LOGGAP_STATUS_FULL` where `capacity` is less;
 * `LOGGAP_STATUS_OPTION` with the name of a field that has no value that a
 * frame can carry; `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_frame_emit(const struct loggap_frame *frame,
                          uint8_t *bytes,
                          size_t capacity,
                          struct loggap_detail *detail);

/**
 * Finds the message in a raw Ethernet frame (without its checksum) with our
 * EtherType. `destination` and `source` take 6 bytes each and may be null;
 * `message` gets a pointer into `frame`.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` for a truncated frame and for those of
 * other protocols, which a station sees all the time and skips;
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
 * 60, at most `LOGGAP_ETHERNET_FRAME` bytes for messages of up to
 * `LOGGAP_ETHERNET_MESSAGE` bytes.
 *
 * Errors: `LOGGAP_STATUS_FULL` where the frame does not fit;
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
 * Takes a first look at a schedule in any of the formats: its size, and the
 * memory that reading it takes. Takes time proportional to the text, or to
 * the ranks of a binary file.
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
 * `loggap_goal_survey`; null where 0 bytes are needed). A sink of null
 * functions only checks the schedule.
 *
 * `label_seed` decides where labels of a text lie in memory. Whoever knows it
 * can write a text whose reading takes time proportional to the square of its
 * labels: a number that nobody can guess where texts come from strangers, any
 * number elsewhere. Nothing else depends on it.
 *
 * Errors: as `loggap_goal_survey`; `LOGGAP_STATUS_SINK` with the code, and
 * with rank and operation where the call was about one;
 * `LOGGAP_STATUS_MEMORY`. What the sink got before is an unfinished schedule.
 */
int32_t loggap_goal_read(const uint8_t *bytes,
                         size_t length,
                         uint8_t *memory,
                         size_t memory_bytes,
                         uint64_t label_seed,
                         const struct loggap_sink *sink,
                         struct loggap_detail *detail);

/**
 * Measures what one reading of `clock` costs, as the median of 33 distances
 * of two readings, and puts it into its `read_cost_ps`. Takes microseconds.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`,
 * `LOGGAP_STATUS_OPTION`.
 */
int32_t loggap_clock_calibrate(struct loggap_clock *clock, struct loggap_detail *detail);

/**
 * Number of detours in a noise trace, malformed lines included: enough places
 * for `loggap_noise_read`. 0 for a null pointer.
 */
size_t loggap_noise_count(const uint8_t *text, size_t length);

/**
 * Bytes to lend to `loggap_noise_read` for so many detours.
 */
size_t loggap_noise_bytes(size_t detours);

/**
 * Reads a noise trace as text, the format of netgauge and LogGOPSim, into
 * `detours` and their number into `count`. `length_ps` gets the stated period
 * of the trace, or 0; it may be null. Memory as `loggap_noise_bytes` says for
 * the detours in the text.
 *
 * Errors: `LOGGAP_STATUS_MALFORMED` with line, column and reason (for a
 * detour that overlaps with the one before, its index in `at`);
 * `LOGGAP_STATUS_FULL` where `capacity` is less than the detours: it holds
 * the first ones, and `count` says how many there are;
 * `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
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
 * Fills in the usual options for `ranks` ranks and messages of `size` bytes.
 *
 * Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_pattern_options_default(struct loggap_pattern_options *options,
                                       uint32_t ranks,
                                       uint64_t size);

/**
 * Puts to `pattern` the `loggap_pattern_kind` with this name: Schedgen's, or
 * one that reads better, such as `binomialtreebcast` or
 * `binomial-broadcast`. `length` is that of the name without a zero byte.
 *
 * Errors: `LOGGAP_STATUS_UNKNOWN_NAME`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_pattern_named(const char *name,
                             size_t length,
                             uint32_t *pattern,
                             struct loggap_detail *detail);

/**
 * The parameters of the range that `size` belongs to as one LogGOPS set, for
 * simulations. `eager_limit` becomes S; `UINT64_MAX` for none.
 *
 * Errors: `LOGGAP_STATUS_OUTSIDE_PROFILE`; `LOGGAP_STATUS_NOT_MEASURED` and
 * `LOGGAP_STATUS_UNUSABLE` with the name of the parameter;
 * `LOGGAP_STATUS_OPTION` for a profile that none can be;
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
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
 * `LOGGAP_STATUS_OVERFLOW`, `LOGGAP_STATUS_OPTION` for a profile that none
 * can be, `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_predict_message(const struct loggap_profile *profile,
                               uint64_t size,
                               struct loggap_prediction *prediction,
                               struct loggap_detail *detail);

/**
 * `PRTT(n, d, s)`: time of `messages` messages of `size` bytes with a wait of
 * `delay_ps` between two sends, and one reply of `size` bytes.
 *
 * Errors: as `loggap_predict_message`, and `LOGGAP_STATUS_OPTION` for no
 * messages.
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
 * bytes by its closed form, a `loggap_form_kind`, in ps. `exact` gets 0 where
 * a simulation gives, or may give, another time; it may be null.
 *
 * Errors: `LOGGAP_STATUS_OPTION` for a form that is none,
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
 * One line that says what `reason` means, ended by a zero byte; empty for 0
 * and for numbers that are none. Never null, valid for ever.
 */
const char *loggap_reason_text(uint32_t reason);

/**
 * Bytes to lend to `loggap_serve` for messages of up to `largest` bytes.
 */
size_t loggap_serve_bytes(size_t largest);

/**
 * Serves one initiator on `link` until it says goodbye, is refused, goes away
 * or falls silent. Messages are bounded by what was lent, down to a whole
 * multiple of `LOGGAP_ALIGNMENT`, and by `max_message`. Whatever arrives, at
 * most `bounds` is done for it; null stands for `loggap_bounds_default`.
 * Blocks; keeps nothing of what it was lent. Takes about 1.4 KiB of stack on
 * a Cortex-M4F. `served` may be null.
 *
 * `nonce` keeps strangers from having replies sent to others: on a link whose
 * messages may be lost nothing but one frame for each hello is sent before the
 * initiator has echoed it. It is a number that nobody can guess, another one
 * for each call; 0 where every peer is known to be at its address. Until the
 * session is over the link sends to where the first hello came from, and
 * receives from nowhere else.
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
 * Bytes to lend to `loggap_responder_init` for replies of up to `largest` bytes.
 */
size_t loggap_responder_bytes(size_t largest);

/**
 * Makes a responder without I/O in `memory`, which is lent until the session
 * is over. Feed it every message by `loggap_responder_handle` and do what it
 * says. `bounds` may be null for the usual ones; messages are bounded by what
 * was lent and by `max_message`. `reliable` as in `loggap_link`, `nonce`
 * as in `loggap_serve`. One responder
 * serves one session; make it anew for the next.
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
 * Takes one message of the initiator at the time `now_ps`, which never
 * decreases, and says what to do.
 *
 * Errors: `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
 * `LOGGAP_STATUS_ALIGNMENT`. Malformed messages are no errors: the responder
 * answers them.
 */
int32_t loggap_responder_handle(struct loggap_responder *responder,
                                uint64_t now_ps,
                                const uint8_t *message,
                                size_t length,
                                struct loggap_responder_action *action,
                                struct loggap_detail *detail);

/**
 * What to send after the message of `LOGGAP_ACTION_KIND_SEND_MORE`.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_more(struct loggap_responder *responder,
                              struct loggap_responder_action *action,
                              struct loggap_detail *detail);

/**
 * What the next message is like.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_next(struct loggap_responder *responder,
                              struct loggap_responder_next_message *next,
                              struct loggap_detail *detail);

/**
 * Takes the duration of the receive call for the next message, in ps.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_timed(struct loggap_responder *responder,
                               uint64_t duration_ps,
                               struct loggap_detail *detail);

/**
 * Nothing came for as long as `loggap_responder_next` says: the session has
 * ended, and `over` gets 1.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_silence(struct loggap_responder *responder,
                                 uint32_t *over,
                                 struct loggap_detail *detail);

/**
 * What the responder has counted so far; `ending` is 0.
 *
 * Errors: as `loggap_responder_handle`.
 */
int32_t loggap_responder_served(struct loggap_responder *responder,
                                struct loggap_served *served,
                                struct loggap_detail *detail);

/**
 * Computes small problems whose answers are known, from every part of the
 * core: whether it was compiled, linked and stored right for this machine.
 * Takes about 7 KiB of stack on a Cortex-M4F. `report` and `count` may be null.
 *
 * Errors: `LOGGAP_STATUS_SELF_TEST` with the number of wrong answers in
 * `found`; `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_selftest(loggap_check_function report,
                        void *context,
                        struct loggap_selftest_count *count,
                        struct loggap_detail *detail);

/**
 * Puts to `needed` the bytes to lend for a simulation of a schedule in any of
 * the formats with these options, its reading included. Reading it takes
 * memory itself, see `loggap_goal_survey`.
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
 * protocol, ascending by size. `finish_ps` gets the finishing time of each
 * rank and may be null with a `capacity` of 0.
 *
 * Errors: as `loggap_goal_read`; `LOGGAP_STATUS_MEMORY` (`needed` is what the
 * next step takes, `loggap_simulate_goal_bytes` says what all of them do);
 * `LOGGAP_STATUS_SCHEDULE` and `LOGGAP_STATUS_DEADLOCK` with rank, operation
 * and reason (a deadlock also with the number of unfinished operations in
 * `needed`); `LOGGAP_STATUS_OVERFLOW`; `LOGGAP_STATUS_FULL` where `capacity`
 * is less than the ranks; `LOGGAP_STATUS_OPTION`; `LOGGAP_STATUS_NULL`;
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
 * Puts to `needed` the bytes to lend for a simulation of a pattern, a
 * `loggap_pattern_kind`. `memory` may be null with 0 bytes but for the
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
 * synthetic traffic. The rest as `loggap_simulate_goal`.
 *
 * Errors: as `loggap_simulate_goal`, none of them about a file;
 * `loggap_simulate_pattern_bytes` says what is enough.
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
 * One line that says what `status` means, ended by a zero byte. Never null,
 * valid for ever; any number is allowed.
 */
const char *loggap_status_text(int32_t status);

/**
 * Version of the interface that the library was built with; compare with
 * `LOGGAP_ABI_VERSION`.
 */
uint32_t loggap_abi_version(void);

/**
 * Version of the library as text such as `0.1.0`, ended by a zero byte.
 * Valid for ever.
 */
const char *loggap_version(void);

/**
 * Compares version and struct sizes of the caller with those of the library.
 * `loggap_check_abi()` calls it with everything filled in; call that once
 * before anything else. `bytes` is `sizeof(loggap_sizes)`.
 *
 * Errors: `LOGGAP_STATUS_VERSION`, with the struct that differs in `name`, what the
 * library has in `needed` and what the caller has in `found`;
 * `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
 */
int32_t loggap_abi_check(uint32_t version,
                         const struct loggap_sizes *sizes,
                         size_t bytes,
                         struct loggap_detail *detail);

/**
 * Fills in the bounds that a responder has unless told otherwise: 1 MiB,
 * 65,536 messages a round, 65,536 rounds a batch, 1 s of pause, 10 s of
 * silence, 1 h altogether.
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
