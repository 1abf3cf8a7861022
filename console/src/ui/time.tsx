/** A time as its distance from now, such as `3 hours ago`. The browser shows the date when the pointer is over it. */
import { distanceText, timeText } from "./text.ts";

export function Time({ iso }: { iso: string }) {
  return (
    <time dateTime={iso} title={timeText(iso)} className="whole">
      {distanceText(iso, Date.now())}
    </time>
  );
}
