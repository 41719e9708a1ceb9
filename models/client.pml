/* ---- a request: asks until it has its answer; each claim of its own is another attempt ---- */

inline hang_up(c) { flight[c] = NOTHING; flightGen[c] = 0; flightToken[c] = 0 }

/* Nobody waits for the call any more; if it is on its way, it goes on. An attempt that lives may listen still. */
inline give_up_call(c, heard_by) {
  if
  :: flight[c] == SENT -> stray[c] = heard_by; strayGen[c] = flightGen[c]; strayToken[c] = flightToken[c]
  :: flight[c] != SENT && heard_by == SENT_HEARD -> stray[c] = flight[c]
  :: flight[c] != SENT && heard_by != SENT_HEARD
  fi;
  hang_up(c)
}

/* Nobody listens any more. */
inline turn_away_from(c) {
  if
  :: stray[c] == SENT_HEARD -> stray[c] = SENT
  :: stray[c] == SENT
  :: stray[c] != SENT && stray[c] != SENT_HEARD -> stray[c] = NOTHING
  fi
}

/* kill -9 of the process: the call may be on its way, and its client asks again. */
inline dies(c) {
  faults--;
  give_up_call(c, SENT);
  acting[c] = 0; mine = 0; r = 0; so = 0; sr = 0; g = 0; result = 0; inherited = false
}

inline leaves(c) { acting[c] = 0; mine = 0; r = 0; g = 0; result = 0; inherited = false }

/* writeFlow: a version of this owner that we had not seen is written over; anything else means that the key is lost. */
#if defined(M_NO_FENCE)
#define MINE true
#else
#define MINE (CAS(mine, r) && HELD_STATE)
#endif
#define MINE_LATER (!(MINE) && owner == mine && HELD_STATE)
#define NOT_MINE (!(MINE) && !(owner == mine && HELD_STATE))

proctype Client(byte c; byte body) {
  byte mine, r;   /* the version that this attempt holds */
  byte so, sr;    /* the version that was seen */
  byte g, stood;  /* of its step: the generation of the key, and its state when the claim was made */
  byte result;
  bool taking, inherited;

ask:
  /* insert, or what stands; whoever is told to come back later asks again when there is something new to hear */
  atomic {
    if
    :: st == ABSENT -> insert_claim(c, body); goto claimed
    :: CONCLUDED && SAME(body) -> send(body, answer); goto heard
    :: st != ABSENT && !(SAME(body)) && (st != RELEASED || PROGRESS) -> reached[c] = 2; goto over
    :: st == RELEASED && (SAME(body) || !PROGRESS) -> taking = true
    :: st == IN_PROGRESS && SAME(body) && lapse > 0 -> taking = !(DIED_IN_DOUBT)
    :: st == UNKNOWN && SAME(body) && CALLED_AGAIN -> taking = true
    :: st != ABSENT && faults > 0 -> faults--; reached[c] = 3; goto over /* its client goes away for good */
    fi;
    so = owner; sr = rev; acting[c] = ABOUT_TO
  }
  atomic {
    if
#if defined(M_CLAIM_BY_READ)
    :: taking && st != ABSENT ->
#else
    :: taking && CAS(so, sr) && !CONCLUDED && st != ABSENT ->
#endif
      assert(st != IN_PROGRESS || lapse > 0); /* S11, G1 */
      inherited = (mark == OPEN);
      so = 0; sr = 0; taking = false;
      take_over(c, body); goto claimed
    :: !taking && CAS(so, sr) && st == IN_PROGRESS ->
      assert(lapse > 0); /* S11 */
      so = 0; sr = 0; acting[c] = 0;
      doubt(c + 1, 0); goto ask
    :: else -> so = 0; sr = 0; acting[c] = 0; taking = false; goto ask
    fi
  }

claimed:
  atomic {
    if
    :: !EXTERNAL || stood == FINISHED -> result = DONE; stood = 0; goto finish
    :: stood == REFUSED -> result = DECLINED; stood = 0; goto finish
    :: EXTERNAL && stood != FINISHED && stood != REFUSED -> stood = 0
    :: faults > 0 -> stood = 0; dies(c); goto ask
    fi
  }

#if STEPS
#if defined(M_CALL_BEFORE_MARK)
  goto call;
#endif
checkpoint:
  atomic { /* the mark stands before the call starts; an attempt that was judged dead makes no call */
    if
    :: MINE && st == IN_PROGRESS ->
      if
      :: mark != OPEN -> mark = OPEN; opened()
      :: else
      fi;
      by(c + 1); r = rev
    :: MINE && st == UNKNOWN -> leaves(c); goto ask
    :: MINE_LATER -> r = rev; goto checkpoint
    :: NOT_MINE -> leaves(c); goto ask
    :: faults > 0 -> dies(c); goto ask
    fi
  }
#endif

call:
  atomic {
    if
    :: flight[c] = SENT;
#if defined(M_KEY_PER_ATTEMPT)
       flightGen[c] = mine;
       assert(mine < GENERATIONS);
#else
       flightGen[c] = g;
#endif
       flightToken[c] = mine
    :: faults > 0 -> faults--; goto not_sent
    :: faults > 0 -> dies(c); goto ask
    fi
  }

waiting:
  atomic {
    if
    :: flight[c] == DONE -> hang_up(c); result = DONE
    :: flight[c] == DECLINED -> hang_up(c); result = DECLINED
    :: flight[c] == TURNED_AWAY -> hang_up(c); goto unheard
    :: faults > 0 -> faults--; give_up_call(c, SENT_HEARD); goto unheard /* the time limit; what was sent goes its way */
    :: faults > 0 -> dies(c); goto ask
    :: lapse > 0 && CAS(mine, r) && st == IN_PROGRESS -> lapse = 0; by(c + 1); r = rev; goto waiting /* a heartbeat */
    fi
  }

#if STEPS
learn:
  atomic { /* what came of the call goes onto its mark before anybody relies on it */
    if
    :: MINE ->
      if
      :: mark == OPEN -> mark = (result == DECLINED -> REFUSED : FINISHED)
      :: else
      fi;
      by(c + 1); r = rev
    :: MINE_LATER -> r = rev; goto learn
    :: NOT_MINE -> leaves(c); goto ask
    :: faults > 0 -> dies(c); goto ask
    fi
  }
#endif

finish:
#if defined(M_ANSWER_FIRST)
  atomic { told = (told == 0 -> mine : told); assert(told == mine); reached[c] = 1; }
#endif
#if defined(M_SPLIT_COMMIT)
  atomic {
    if
    :: owner == mine && HELD_STATE -> count_effect()
    :: NOT_MINE -> leaves(c); goto ask
    :: faults > 0 -> dies(c); goto ask
    fi
  }
#endif
again:
  atomic { /* effect, record and answer in one commit */
    if
    :: MINE ->
      conclude(c + 1, result);
#if !defined(M_SPLIT_COMMIT)
      if
      :: !STEPS && result != DECLINED -> count_effect()
      :: else
      fi;
#endif
      agree(); goto answered
#if DECLINES
    :: !EXTERNAL && (MINE) -> conclude(c + 1, DECLINED); agree(); goto answered
#endif
#if CLASS == LOCAL
    :: (MINE) && faults > 0 -> faults--; release(c + 1, 0); leaves(c); goto ask /* it threw */
#endif
    :: EXTERNAL && !STEPS && (MINE) && faults > 0 -> /* five tries failed: the second budget keeps what is known */
      faults--; doubt(c + 1, result); leaves(c); goto ask
    :: MINE_LATER -> r = rev; goto again
#if defined(M_LOSER_ANSWERS)
    :: NOT_MINE -> told = (told == 0 -> mine : told); assert(told == mine); assert(CONCLUDED); goto heard
#else
    :: NOT_MINE -> leaves(c); goto ask
#endif
    :: faults > 0 -> dies(c); goto ask
    :: lapse > 0 && CAS(mine, r) && st == IN_PROGRESS -> lapse = 0; by(c + 1); r = rev; goto again
    fi
  }

answered:
  atomic { /* it is kept; now it is sent */
    if
    :: assert(CONCLUDED && owner == mine && writer == c + 1); /* S6 */ send(body, answer); goto heard
    :: faults > 0 -> dies(c); goto ask
    :: faults > 0 -> faults--; /* the commit's reply was lost: the same write again, by its id */
#if defined(M_UNFENCED_RETRY)
      count_effect()
#endif
      ;
      if
      :: writer == c + 1 && CONCLUDED && owner == mine -> send(body, answer); goto heard
      :: else -> leaves(c); goto ask
      fi
    fi
  }

not_sent:
  atomic { /* proved that nothing was sent; that says nothing of an earlier call in doubt */
    if
    :: MINE && !inherited -> release(c + 1, 0); leaves(c); goto ask
    :: MINE && inherited -> goto unheard
    :: MINE_LATER -> r = rev; goto not_sent
    :: NOT_MINE -> leaves(c); goto ask
    fi
  }

unheard:
  atomic {
    if
#if defined(M_TIMEOUT_FAILS)
    :: MINE -> conclude(c + 1, DECLINED); agree(); goto answered
#elif defined(M_TIMEOUT_RELEASES)
    :: MINE -> release(c + 1, 0); leaves(c); goto ask
#else
    :: MINE && st == IN_PROGRESS -> doubt(c + 1, 0); r = rev
    :: MINE && st == UNKNOWN -> by(c + 1); r = rev
#endif
    :: MINE_LATER -> r = rev; goto unheard
    :: NOT_MINE -> r = 0
    :: faults > 0 -> turn_away_from(c); dies(c); goto ask
    fi
  }

listening:
  /* a late result is one more verdict, until somebody has taken the record over */
  atomic {
    if
    :: stray[c] == DONE || stray[c] == DECLINED -> result = stray[c]; stray[c] = NOTHING
    :: stray[c] != DONE && stray[c] != DECLINED -> turn_away_from(c); leaves(c); goto ask
    fi
  }
late:
  atomic {
    if
#if STEPS
    :: MINE ->
      if
      :: mark == OPEN -> mark = (result == DECLINED -> REFUSED : FINISHED)
      :: else
      fi;
      release(c + 1, 0); leaves(c); goto ask
#else
    :: MINE ->
      conclude(c + 1, result);
      if
      :: result != DECLINED -> count_effect()
      :: else
      fi;
      agree(); goto answered
#endif
    :: MINE_LATER -> r = rev; goto late
    :: NOT_MINE -> leaves(c); goto ask
    :: faults > 0 -> dies(c); goto ask
    fi
  }

heard:
  atomic { leaves(c); reached[c] = 1 }
over:
  skip
}
