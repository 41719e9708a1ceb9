/* ---- the sweeper ---- */

#if defined(M_SWEEP_EARLY)
#define STALE true
#else
#define STALE (lapse == 2)
#endif

proctype Sweeper() {
  byte so, sr;
end:
  do
  :: atomic { st == IN_PROGRESS && STALE -> so = owner; sr = rev }
     atomic {
       if
       :: CAS(so, sr) && st == IN_PROGRESS -> assert(lapse == 2); /* S11 */ judged(PROCESSES + 1)
       :: else
       fi;
       so = 0; sr = 0
     }
  od
}

/* ---- the reconciler ---- */

#define LOOK_DUE (st == UNKNOWN && disposition == RECONCILE && lapse == 0 \
  && (CLASS != REPEATABLE || evidence != 0 || ttlOver) \
  && (CLASS != QUERY || evidence != 0 || looks + 2 < MAX_LOOKS || overUntil >= dueToken))

#if defined(M_RECONCILER_NO_FENCE)
#define HELD (st == UNKNOWN)
#else
#define HELD (CAS(mine, r) && st == UNKNOWN)
#endif

/* What a provider says that can be asked; a call that is unseen is not found. */
#define FOUND (kept[g] == MADE && !unseen)

inline stops(p) { acting[p] = 0; mine = 0; r = 0; so = 0; sr = 0; g = 0; result = 0; after = false }

/* There is something to ask about. */
#define IN_DOUBT (evidence == 0 && !(STEPS && mark != OPEN))

proctype Reconciler(byte p) {
  byte mine, r, so, sr, result;
  byte g;     /* the generation of the key, as its own version of the record has it */
  bool after; /* the provider was asked after validUntil, by the store's clock */
end:
  do
  :: atomic { LOOK_DUE -> so = owner; sr = rev }
     atomic { /* takes it over first, so that the former attempt is fenced */
       if
       :: CAS(so, sr) && st == UNKNOWN ->
         token++; assert(token < 40);
         owner = token; rev = 0; writer = p + 1; lapse = 1;
         mine = token; g = gen; acting[p] = token; so = 0; sr = 0;
         after = (overUntil >= dueToken)
       :: else -> stops(p); goto end
       fi
     }
     atomic { /* asks, outside any transaction */
       if
#if STEPS
       :: mark != OPEN -> goto nothing_in_doubt
#endif
       :: evidence != 0 -> result = evidence; goto ending
       :: IN_DOUBT && !ASKABLE -> goto person
       :: IN_DOUBT && ASKABLE && FOUND -> result = DONE; goto ending
       :: IN_DOUBT && ASKABLE && kept[g] == DECLINE -> result = DECLINED; goto ending
       /* what was taken before validUntil is to be found when the second look comes: assumption 4 */
       :: IN_DOUBT && ASKABLE && !FOUND && kept[g] != DECLINE && !(CLASS == QUERY && unseen && after && looks > 0) -> skip
       :: IN_DOUBT && ASKABLE && faults > 0 -> faults--; goto put_back /* out of reach */
       :: faults > 0 -> faults--; stops(p); goto end /* kill -9 */
       fi
     }
#if CLASS == KEYED
#if defined(M_NO_CANCEL)
     goto cancelled;
#endif
     atomic { /* only the record's owner may send a cancel */
       if
       :: HELD -> by(p + 1); r = rev
       :: else -> stops(p); goto end
       fi
     }
     atomic {
       if
       :: kept[g] == MADE -> result = DONE; goto ending /* unseen or not */
       :: kept[g] == DECLINE -> result = DECLINED; goto ending
       :: kept[g] == NOTHING || kept[g] == DEAD -> kept[g] = DEAD; goto cancelled
       :: faults > 0 -> faults--; goto put_back /* out of reach before it was heard */
       :: faults > 0 && kept[g] != MADE && kept[g] != DECLINE -> faults--; kept[g] = DEAD; goto put_back /* and after */
       :: faults > 0 -> faults--; stops(p); goto end
       fi
     }
cancelled:
     atomic {
       if
#if defined(M_CANCEL_SAME_KEY)
       :: HELD -> release(p + 1, 0)
#else
       :: HELD -> release(p + 1, 1)
#endif
       :: !(HELD)
       :: faults > 0 -> faults--
       fi;
       stops(p); goto end
     }
#endif
#if CLASS == QUERY
#if defined(M_DEADLINE_AFTER_ASKING)
     atomic { after = (overUntil >= dueToken) }
#endif
     atomic { /* judgeNotFound */
       if
#if defined(M_NOT_FOUND_PROVES)
       :: HELD -> release(p + 1, 0)
#elif defined(M_ONE_LOOK)
       :: HELD && after -> release(p + 1, 0)
       :: HELD && !after -> by(p + 1); looks++; lapse = 0
#else
       :: HELD && after && looks > 0 -> release(p + 1, 0)
       :: HELD && !(after && looks > 0) && looks + 1 < MAX_LOOKS -> by(p + 1); looks++; lapse = 0
       :: HELD && !(after && looks > 0) && looks + 1 >= MAX_LOOKS -> by(p + 1); disposition = REVIEW; lapse = 0
#endif
       :: !(HELD)
       :: faults > 0 -> faults--
       fi;
       stops(p); goto end
     }
#endif
ending:
#if STEPS
     atomic { /* there is no handler here to finish: what is learnt goes onto the mark */
       if
       :: HELD ->
         if
         :: mark == OPEN -> mark = (result == DECLINED -> REFUSED : FINISHED)
         :: else
         fi;
         by(p + 1); r = rev
       :: else -> stops(p); goto end
       :: faults > 0 -> faults--; stops(p); goto end
       fi
     }
nothing_in_doubt:
     atomic { /* the next request goes on from here */
       if
       :: HELD -> release(p + 1, 0)
       :: !(HELD)
       :: faults > 0 -> faults--
       fi;
       stops(p); goto end
     }
#else
     atomic {
       if
       :: HELD && faults > 0 -> faults--; by(p + 1); evidence = result; lapse = 0 /* the finish failed */
       :: HELD ->
         conclude(p + 1, result);
         if
         :: result != DECLINED -> count_effect()
         :: else
         fi;
         agree()
       :: !(HELD)
       :: faults > 0 -> faults--
       fi;
       stops(p); goto end
     }
#endif
put_back:
     atomic {
       if
       :: HELD -> by(p + 1); lapse = 0
       :: else
       fi;
       stops(p); goto end
     }
person:
     atomic {
       if
       :: HELD -> by(p + 1); disposition = REVIEW; lapse = 0
       :: else
       fi;
       stops(p)
     }
  od
}
