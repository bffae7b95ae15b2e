/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends of jobs for one waiting thread of the host's language, which then looks for those that ended
 * and lets go of what they were lent. A counter and nothing else: it is raised on threads of the
 * library, which wait for nothing. A wait may find more ends than one, and none. Thread-safe. */
#ifndef SHW_JOB_ENDS_H
#define SHW_JOB_ENDS_H

#include <pthread.h>
#include <semaphore.h>

#include "shardwright/job.h"

static sem_t shw_job_ends;
static pthread_once_t shw_job_ends_made = PTHREAD_ONCE_INIT;

static void shw_make_job_ends(void) {
  (void)sem_init(&shw_job_ends, 0, 0); /* cannot fail: neither shared nor above the largest value */
}

static void shw_note_job_end(void* user) {
  (void)user;
  (void)sem_post(&shw_job_ends); /* full, it says enough */
}

/* 1 when the end of the job will be noted, 0 when it has ended. */
static int shw_watch_job(shw_job* job) {
  pthread_once(&shw_job_ends_made, shw_make_job_ends);
  return shw_job_on_done(job, shw_note_job_end, NULL, NULL) == SHW_OK;
}

static void shw_wait_for_job_ends(void) {
  pthread_once(&shw_job_ends_made, shw_make_job_ends);
  while (sem_wait(&shw_job_ends) != 0) {
    /* a signal came in between */
  }
}

#endif
