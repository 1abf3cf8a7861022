/** What every event source can be asked to do while it runs. */

export interface RunningSource {
  /** Says that there may be news, so that it is found at once. */
  kick(): void;
  /** Settles when what was in work is done or given back. */
  stop(): Promise<void>;
}
