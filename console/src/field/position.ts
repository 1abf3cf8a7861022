/** Reads the position of the device. The browser asks the user before the first use. The position is not sent to the service. */
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { dismiss, notifyFailed } from "../ui/notices.tsx";
import type { Position } from "./distance.ts";

export interface Measured {
  readonly position: Position;
  /** With 95 % probability, the device is at most this far from the position. */
  readonly accuracyM: number;
}

/**
 * Returns the measured position. Returns undefined while `isWanted` is false or the position is not known. Calls `onDenied` if the browser
 * does not give the position to this page. To ask the browser again, set `isWanted` to false and then to true.
 */
export function usePosition(isWanted: boolean, onDenied: () => void): Measured | undefined {
  const [measured, setMeasured] = useState<Measured>();
  const notice = useRef(0);
  const denied = useEffectEvent(onDenied);
  useEffect(() => {
    if (!isWanted) return;
    dismiss(notice.current);
    const id = navigator.geolocation.watchPosition(
      ({ coords: { longitude, latitude, accuracy } }) => {
        dismiss(notice.current);
        setMeasured({ position: [longitude, latitude], accuracyM: accuracy });
      },
      ({ code, PERMISSION_DENIED }) => {
        dismiss(notice.current);
        const isDenied = code === PERMISSION_DENIED;
        const refused = "This page may not use your position. Allow it in the settings of the browser.";
        notice.current = notifyFailed(new Error(isDenied ? refused : "Your position is not known at the moment."));
        if (isDenied) denied();
      },
      { enableHighAccuracy: true, maximumAge: 10_000 },
    );
    return () => navigator.geolocation.clearWatch(id);
  }, [isWanted]);
  return isWanted ? measured : undefined;
}
