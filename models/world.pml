/* ---- the provider ---- */

#if defined(M_NO_DEADLINE)
#define TOO_LATE(t) false
#else
#define TOO_LATE(t) (CLASS == QUERY && overUntil >= (t))
#endif

inline arrives(where, k, t, reply) {
  if
  :: DEDUPLICATES && kept[k] == DEAD -> 
    reply = TURNED_AWAY
  :: DEDUPLICATES && kept[k] == MADE && !forgotten -> reply = DONE
  :: DEDUPLICATES && kept[k] == DECLINE && !forgotten -> reply = DECLINED
  :: TOO_LATE(t) -> reply = TURNED_AWAY
  :: else ->
    if
    :: count_execution(); kept[k] = MADE; reply = DONE;
       /* S8: nothing happens any more for a record that was released or refused */
       assert(st != FAILED && (st != RELEASED || gen != k))
    :: ASKABLE && faults > 0 ->
       count_execution(); kept[k] = MADE; reply = DONE; faults--; unseen = true;
       assert(st != FAILED && (st != RELEASED || gen != k))
#if DECLINES
    :: DEDUPLICATES -> kept[k] = DECLINE; reply = DECLINED
    :: !DEDUPLICATES -> reply = DECLINED
#endif
    fi
  fi
}

proctype Provider() {
  byte i, reply;
end:
  do
  :: atomic {
       if
       :: flight[0] == SENT -> i = 0
       :: CLIENTS > 1 && flight[1 % CLIENTS] == SENT -> i = 1
       :: CLIENTS > 2 && flight[2 % CLIENTS] == SENT -> i = 2
       fi;
       /* a dead key is never used by an attempt that began after its death */
       assert(!(CLASS == KEYED && kept[flightGen[i]] == DEAD && gen == flightGen[i] && owner == flightToken[i]
         && st == IN_PROGRESS && RETENTION == 0));
       arrives(i, flightGen[i], flightToken[i], reply);
       flight[i] = reply; i = 0; reply = 0
     }
  :: atomic {
       if
       :: stray[0] == SENT || stray[0] == SENT_HEARD -> i = 0
       :: CLIENTS > 1 && (stray[1 % CLIENTS] == SENT || stray[1 % CLIENTS] == SENT_HEARD) -> i = 1
       :: CLIENTS > 2 && (stray[2 % CLIENTS] == SENT || stray[2 % CLIENTS] == SENT_HEARD) -> i = 2
       fi;
       if
       :: arrives(i, strayGen[i], strayToken[i], reply)
       :: reply = NOTHING /* it never arrives */
       fi;
       stray[i] = (stray[i] == SENT_HEARD -> reply : NOTHING);
       strayGen[i] = 0; strayToken[i] = 0; i = 0; reply = 0
     }
  :: unseen -> unseen = false
  od
}

/* ---- time ---- */

#define ACTS (acting[0] == owner || (PROCESSES > 1 && acting[1 % PROCESSES] == owner) \
  || (PROCESSES > 2 && acting[2 % PROCESSES] == owner) || (PROCESSES > 3 && acting[3 % PROCESSES] == owner) \
  || (PROCESSES > 4 && acting[4 % PROCESSES] == owner))
#define NO_CALL (flight[0] == NOTHING && stray[0] == NOTHING \
  && (CLIENTS < 2 || (flight[1 % CLIENTS] == NOTHING && stray[1 % CLIENTS] == NOTHING)) \
  && (CLIENTS < 3 || (flight[2 % CLIENTS] == NOTHING && stray[2 % CLIENTS] == NOTHING)))
#define NOBODY_ACTS (acting[0] == 0 && (PROCESSES < 2 || acting[1 % PROCESSES] == 0) \
  && (PROCESSES < 3 || acting[2 % PROCESSES] == 0) && (PROCESSES < 4 || acting[3 % PROCESSES] == 0) \
  && (PROCESSES < 5 || acting[4 % PROCESSES] == 0))

#if defined(M_PURGE_LIVE)
#define ENDED (st != ABSENT)
#else
#define ENDED (CONCLUDED || st == RELEASED)
#endif

proctype Time() {
end:
  do
  /* a lease runs out by itself where nobody is left; where its owner lives, that is a fault: it was slow or stopped */
  :: atomic { st == IN_PROGRESS && lapse == 0 && !(ACTS) -> lapse = 1 }
  :: atomic { st == IN_PROGRESS && lapse == 0 && (ACTS) && faults > 0 -> faults--; lapse = 1 }
  :: atomic { st == IN_PROGRESS && lapse == 1 -> lapse = 2 }
  :: atomic { st == UNKNOWN && lapse == 1 && !(ACTS) -> lapse = 0 }
  :: atomic { st == UNKNOWN && lapse == 1 && (ACTS) && faults > 0 -> faults--; lapse = 0 }
#if CLASS == QUERY
  :: atomic { overUntil < dueToken && st == UNKNOWN -> overUntil = dueToken }
  :: atomic { mark == OPEN && overUntil < dueToken && st == IN_PROGRESS && faults > 0 -> faults--; overUntil = dueToken }
#endif
#if CLASS == REPEATABLE
  :: atomic { !ttlOver && st == UNKNOWN -> ttlOver = true }
  /* the provider forgets only when no attempt that began in time can still call: keyTtl is shortened by the longest run */
  :: atomic { ttlOver && !forgotten && NOBODY_ACTS && NO_CALL -> forgotten = true }
#endif
#if RETENTION
  /* nobody sleeps for as long as a retention */
  :: atomic { ENDED && retentions > 0 && (NO_CALL) && (NOBODY_ACTS) ->
       retentions--;
       st = ABSENT; fp = 0; answer = 0; owner = 0; rev = 0; mark = CLEAR; gen = 0; writer = 0; lapse = 0;
       looks = 0; disposition = 0; evidence = 0;
#if !defined(M_PURGE_LIVE)
       effects = 0; executions = 0;
#endif
       told = 0
     }
#endif
  od
}
