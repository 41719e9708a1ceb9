/*
 * One key, from its claim to its answer: copies of one request, sweeper, reconcilers, provider and the time between them.
 * Every `atomic` that touches the record is one statement of the store; between two of them anything may happen.
 * README.md of this folder says what each name stands for in src, what is left out, and what was counted.
 *
 * Set by -D: CLASS, STEPS, CLIENTS, RECONCILERS, FAULTS, OTHER, DECLINES, RETENTION, and one mutant M_….
 */

/* Where the effect is, and what its provider offers. */
#define LOCAL 1      /* effects: "transaction" */
#define KEYED 2      /* deduplicates, can be asked, can cancel */
#define QUERY 3      /* can be asked; refuses what comes after validUntil */
#define REPEATABLE 4 /* deduplicates by our key until keyTtl ends */
#define BLIND 5      /* silence says nothing */

#ifndef CLASS
#define CLASS KEYED
#endif
#ifndef STEPS
#define STEPS 0 /* 0: an operation, whose mark opens with its claim. 1: declared effects, whose mark is a write of its own */
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef RECONCILERS
#define RECONCILERS 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef OTHER
#define OTHER 0 /* 1: the last client sends another body under the key */
#endif
#ifndef DECLINES
#define DECLINES 0 /* 1: the provider, or the transaction, may refuse for good */
#endif
#ifndef RETENTION
#define RETENTION 0 /* so often the retention of an ended record may end */
#endif

#define EXTERNAL (CLASS != LOCAL)
#define ASKABLE (CLASS == KEYED || CLASS == QUERY)
#define DEDUPLICATES (CLASS == KEYED || CLASS == REPEATABLE)
#define GENERATIONS 8
#ifndef MAX_LOOKS
#define MAX_LOOKS 3 /* maxReconcileLooks */
#endif

/* States of the record. */
#define ABSENT 0
#define IN_PROGRESS 1
#define RELEASED 2
#define UNKNOWN 3
#define COMPLETED 4
#define FAILED 5

/* States of its one step. */
#define CLEAR 0
#define OPEN 1
#define FINISHED 2
#define REFUSED 3

/* Dispositions of an unknown. */
#define RECONCILE 1
#define REVIEW 2

/* A call on its way, and what is heard of it. */
#define NOTHING 0
#define SENT 1
#define DONE 2
#define DECLINED 3
#define TURNED_AWAY 4 /* a dead key, or too late: no word about any other call */
#define SENT_HEARD 5  /* its attempt gave up, and listens still */

/* What a provider keeps under a key. */
#define MADE 1
#define DECLINE 2
#define DEAD 3

/* ---- the record: one row ---- */
byte st, fp, answer;
byte owner, rev;    /* what a compare-and-set compares; the owner is the number of its attempt, and rev begins again with each */
byte lapse;         /* in_progress: 1 the lease is over, 2 the grace too. unknown: 1 while a look has it on lease */
byte mark, gen;
byte looks, disposition, evidence;
byte writer;        /* whose write made this version: the write id */

/* ---- the store's counter of attempts, and who acts under which ---- */
byte token;
#define PROCESSES (CLIENTS + RECONCILERS)
byte acting[PROCESSES];
#define ABOUT_TO 99 /* has decided, and holds nothing */

/* ---- the world ---- */
byte faults = FAULTS;
byte retentions = RETENTION;
byte kept[GENERATIONS]; /* by the provider, by generation of the key */
bool unseen;            /* made, and not to be found yet */
byte dueToken;          /* whose validUntil the open mark has (QUERY): it counts from that attempt's claim */
byte overUntil;         /* the validUntil of every attempt up to this one is over */
bool ttlOver, forgotten;
byte flight[CLIENTS], flightGen[CLIENTS], flightToken[CLIENTS];
byte stray[CLIENTS], strayGen[CLIENTS], strayToken[CLIENTS];

/* ---- what is counted ---- */
byte effects;    /* rows of the domain that were committed */
byte executions; /* at the provider */
byte told;       /* the first final answer that anybody heard */
byte reached[CLIENTS]; /* 1: heard the final answer. 2: was told that the key is another request's. 3: went away */

#define CONCLUDED (st == COMPLETED || st == FAILED)
#define HELD_STATE (st == IN_PROGRESS || st == UNKNOWN)
#define PROGRESS (mark == OPEN || mark == FINISHED)

#if defined(M_OWNER_ONLY)
#define CAS(o, r) (owner == (o))
#else
#define CAS(o, r) (owner == (o) && rev == (r))
#endif

/* judgeDeath: what a dead attempt may have done decides, never its age. */
#if defined(M_SWEEP_RELEASES)
#define DIED_IN_DOUBT false
#else
#define DIED_IN_DOUBT (EXTERNAL && mark == OPEN)
#endif

/* isRepeatable */
#if defined(M_RERUN_UNKNOWN)
#define CALLED_AGAIN (mark == OPEN && evidence == 0)
#elif defined(M_REPEAT_PAST_TTL)
#define CALLED_AGAIN (CLASS == REPEATABLE && mark == OPEN && evidence == 0)
#else
#define CALLED_AGAIN (CLASS == REPEATABLE && mark == OPEN && evidence == 0 && !ttlOver)
#endif

#if defined(M_NO_FINGERPRINT)
#define SAME(body) true
#else
#define SAME(body) (fp == (body))
#endif

#include "record.pml"
#include "client.pml"
#include "workers.pml"
#include "world.pml"

/* ---- when nothing moves any more ---- */

#if OTHER
#define BODY(c) ((c) == CLIENTS - 1 -> 2 : 1)
#else
#define BODY(c) 1
#endif
#define IN_REVIEW (st == UNKNOWN && disposition == REVIEW && (CLASS == BLIND || CLASS == REPEATABLE))

proctype Quiet() {
  timeout;
  atomic {
    /* L1: every record is concluded or released, or left to a person where the provider's silence says nothing */
    assert(CONCLUDED || st == RELEASED || IN_REVIEW || (st == ABSENT && RETENTION > 0));
    /* L2: whoever asks has the answer, or knows that the key is another's */
    assert(IN_REVIEW || reached[0] != 0);
    assert(IN_REVIEW || CLIENTS < 2 || reached[1 % CLIENTS] != 0);
    assert(IN_REVIEW || CLIENTS < 3 || reached[2 % CLIENTS] != 0)
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. CLIENTS - 1) { run Client(i, BODY(i)) }
#if !defined(M_NO_SWEEPER)
    run Sweeper();
#endif
    for (i : 0 .. RECONCILERS - 1) { run Reconciler(CLIENTS + i) }
    run Provider();
    run Time();
    run Quiet();
    i = 0
  }
}
