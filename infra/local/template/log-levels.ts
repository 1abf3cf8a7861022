/** Lists the levels of log lines that the template can set for a function, from the most detailed to the least detailed. */

export const logLevels = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"] as const;
export type LogLevel = (typeof logLevels)[number];
