/** The position of the device. The browser asks the user when the position is first used. It stays on the device. */
import { useEffect, useState } from "react";
import { notifyFailed } from "../ui/notices.tsx";
import type { Position } from "./distance.ts";

export interface Measured {
  readonly position: Position;
  /** With 95 % probability, the device is at most this far from the position. */
  readonly accuracyM: number;
}

/** Returns undefined while it is not wanted or not known. */
export function usePosition(isWanted: boolean): Measured | undefined {
  const [measured, setMeasured] = useState<Measured>();
  useEffect(() => {
    if (!isWanted) return;
    const id = navigator.geolocation.watchPosition(
      ({ coords: { longitude, latitude, accuracy } }) =>
        setMeasured({ position: [longitude, latitude], accuracyM: accuracy }),
      ({ code, PERMISSION_DENIED }) =>
        notifyFailed(
          new Error(
            code === PERMISSION_DENIED
              ? "This page may not use your position. Allow it in the settings of the browser."
              : "Your position is not known at the moment.",
          ),
        ),
      { enableHighAccuracy: true, maximumAge: 10_000 },
    );
    return () => navigator.geolocation.clearWatch(id);
  }, [isWanted]);
  return isWanted ? measured : undefined;
}
