/** GET /api/reports/activity: counts the status changes, notes, appointments and new prospects in a time range. */
import { streamEndpoint } from "#shared/http/streaming.ts";
import { ActivityQuery, ActivityReport, activityReport } from "#shared/reports/activity.ts";

export const handler = streamEndpoint(
  {
    summary: "Count what users have done",
    description:
      "Exact counts of status changes, notes, appointments and new prospects in a time range, by user, status, day or territory. Activity counts at the time when a user did it, also if a device sent it later. A user who sees only own prospects gets only what this user has done. 400 if the range has so much activity that the report would be too large.",
    allow: "everyone",
    scope: "prospects:read",
    query: ActivityQuery,
    response: ActivityReport,
  },
  ({ context, caller, query }) => activityReport(context, caller, query),
);
