/** A component that shows a MapLibre map with the base map. The page that uses the component adds other layers in `onReady`. */
import {
  GPUInitializationError,
  type LngLatBoundsLike,
  Map as MapLibre,
  type MapOptions,
  NavigationControl,
  ScaleControl,
} from "maplibre-gl";
import "maplibre-gl/dist/maplibre-gl.css";
import { useEffect, useRef, useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { SAME_SITE } from "../api/client.ts";
import { useConfig } from "../api/reference.ts";
import { schemeOf, useScheme } from "../shell/theme.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { useBaseMap } from "./base-map.ts";
import { cameraIn, cameraOf, withCamera } from "./camera.ts";
import style from "./canvas.module.css";
import type { Bounds } from "./features.ts";
import { firstStyle } from "./own-style.ts";
import "./worker.ts";

/** The contiguous United States. The map shows this part until the page knows where its records are. */
const START: LngLatBoundsLike = [-125, 24, -66, 50];
const PADDING_PX = 48;
/** Maximum zoom when the map moves to its records. Without it, the map would zoom in to the limit if there is only one prospect. */
const CLOSEST_ZOOM = 16;
/**
 * Milliseconds for which the map must rest before its center and zoom are stored in the URL, because browsers refuse more than ten changes
 * of a URL a second.
 */
const PAUSE_MS = 250;
/** Milliseconds in which a label appears. Users who have asked for less motion see it at once. */
const FADE_MS = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 300;

interface CanvasProps {
  /** The name of the map for screen readers. */
  readonly label: string;
  /** The area that the map shows if the URL has no camera. If `bounds` changes, the map moves to the new area. */
  readonly bounds: Bounds | undefined;
  /** True if `onReady` moves the map. The component then does not move it to `bounds`. */
  readonly isPlaced?: boolean;
  /** True while the page loads its records. The base map is not loaded until then, so that it does not delay the records. */
  readonly isWaiting?: boolean;
  /** Called when layers can be added to the map. After a change of the page's colours, it is called again with the new map. */
  readonly onReady: (map: MapLibre) => void;
}

/** A change of the page's colours makes a new map, because layers and their images keep the colours with which they were made. */
export const Canvas = (props: CanvasProps) => <ColoredCanvas key={useScheme()} {...props} />;

function ColoredCanvas({ label, bounds, isPlaced = false, isWaiting = false, onReady }: CanvasProps) {
  const config = useConfig().data;
  const place = useRef<HTMLDivElement>(null);
  const [map, setMap] = useState<MapLibre>();
  const [sources, setSources] = useState("");
  const [isDrawn, setDrawn] = useState(false);
  const [isRefused, setRefused] = useState(false);
  const isMissing = useBaseMap(isDrawn ? map : undefined, config);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the map is made once; another effect moves it when the bounds change
  useEffect(() => {
    if (place.current === null) return;
    const made = mapOr(() => setRefused(true), {
      container: place.current,
      style: firstStyle(schemeOf()),
      ...(cameraIn(location.search) ?? {
        bounds: bounds === undefined ? START : [...bounds],
        fitBoundsOptions: { padding: PADDING_PX, maxZoom: CLOSEST_ZOOM },
      }),
      // MapLibre's own control for the attribution parses HTML, which the Content-Security-Policy of the page forbids. The text in the
      // corner of the map has the same content.
      attributionControl: false,
      fadeDuration: FADE_MS,
      // Rotation is off. Users would rotate the map by accident, with the keyboard or two fingers, and a rotated map is of no use here.
      dragRotate: false,
      pitchWithRotate: false,
      transformRequest: (url) => (url.startsWith(location.origin) ? { url, headers: SAME_SITE } : { url }),
    });
    if (made === undefined) return;
    made.touchZoomRotate.disableRotation();
    made.addControl(new NavigationControl({ showCompass: false }), "top-right");
    made.addControl(new ScaleControl({ unit: "imperial" }), "bottom-left");
    made.getCanvas().setAttribute("aria-label", label);
    made.on("idle", () => setSources(attributionOf(made)));
    made.once("style.load", () => {
      onReady(made);
      setMap(made);
      // Tests get the map from this event, and then ask the map which features are drawn.
      place.current?.dispatchEvent(new CustomEvent("mapready", { detail: made, bubbles: true }));
    });
    return () => made.remove();
  }, []);
  useEffect(() => {
    if (map === undefined || isWaiting) return;
    const subscription = map.on("idle", () => setDrawn(true));
    return () => subscription.unsubscribe();
  }, [map, isWaiting]);
  const box = bounds?.join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: `box` changes with the values of `bounds`
  useEffect(() => {
    if (map === undefined) return;
    const fit = (): string => {
      if (bounds !== undefined) fitTo(map, bounds);
      return cameraOf(map);
    };
    const { pathname, search } = location;
    let fitted = cameraIn(search) === undefined && !isPlaced ? fit() : undefined;
    let timer = 0;
    // The URL has the camera only if the user has moved the map, so that a link without a camera shows all records on each screen.
    const store = (): void => {
      if (location.pathname !== pathname) return;
      const camera = cameraOf(map);
      const query = withCamera(location.search, camera === fitted ? undefined : camera);
      if (`?${query}` !== location.search)
        navigate(query === "" ? pathname : `${pathname}?${query}`, { replace: true });
    };
    const restore = (): void => {
      if (location.pathname !== pathname) return;
      const camera = cameraIn(location.search);
      if (camera === undefined) fitted = fit();
      else map.jumpTo(camera);
    };
    addEventListener("popstate", restore);
    const listening = [
      // The map becomes smaller when the filters appear, or when a prospect opens beside it. MapLibre keeps the center and the zoom, so
      // records at the edge would no longer be visible. The map is therefore fitted to the bounds again, unless the user has moved it.
      map.on("resize", () => {
        if (cameraOf(map) === fitted) fitted = fit();
      }),
      map.on("moveend", () => {
        clearTimeout(timer);
        timer = window.setTimeout(store, PAUSE_MS);
      }),
    ];
    return () => {
      clearTimeout(timer);
      removeEventListener("popstate", restore);
      for (const { unsubscribe } of listening) unsubscribe();
    };
  }, [box, map]);
  return (
    <div className={style.frame} ref={place} data-ready={map !== undefined} data-scheme={schemeOf()}>
      {map !== undefined && bounds !== undefined && (
        <Button title="Fit all" aria-label="Fit all" onClick={() => fitTo(map, bounds)}>
          <Icon name="fit" />
        </Button>
      )}
      {isRefused && (
        <p role="status" className={style.refused}>
          This browser cannot draw the map.
        </p>
      )}
      <small className={style.sources}>
        {isMissing && <span role="status">The street map does not answer. </span>}
        {sources}
      </small>
    </div>
  );
}

/** Makes a map. Without WebGL, calls `refuse` instead, so that the rest of the page works without the map. */
function mapOr(refuse: () => void, options: MapOptions): MapLibre | undefined {
  try {
    return new MapLibre(options);
  } catch (error) {
    if (!(error instanceof GPUInitializationError)) throw error;
    refuse();
    return undefined;
  }
}

function fitTo(map: MapLibre, [west, south, east, north]: Bounds): void {
  map.fitBounds([west, south, east, north], { padding: PADDING_PX, maxZoom: CLOSEST_ZOOM, animate: false });
}

/** Returns the attributions of the base map's sources as plain text, without their links. */
function attributionOf(map: MapLibre): string {
  const texts = Object.keys(map.getStyle().sources).map((id) => map.getSource(id)?.attribution ?? "");
  return [...new Set(texts.map((text) => text.replace(/<[^>]*>/g, "").trim()))]
    .filter((text) => text !== "")
    .join(" · ");
}
